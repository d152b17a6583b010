"""Converting requests to records, and reporting dropped series and samples."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.gateway.options import GatewayOptions
from strandline.node.gateway.packing import Packed, loss_error, pack
from strandline.time_range import TimeRange
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.encoding import Series, encode_request, field
from strandline.wire.label_texts import labels_text
from strandline.wire.snappy import BadBlock, compress, decompress
from strandline.wire.splitting import BadRequest
from support.decoding import rows_of
from support.gateways import body_of, decoded, up
from support.remote_write import RawWriteRequest, WriteRequest
from support.splitting import partition_of

pytestmark = pytest.mark.unit

OPTIONS = GatewayOptions()


def long_series(name: str, samples: int) -> Series:
    return Series([("__name__", name)], [(time, time / 7) for time in range(samples)])


def by_partition(body: bytes, partitions: int, options: GatewayOptions = OPTIONS) -> dict[int, list[bytes]]:
    log: dict[int, list[bytes]] = {}
    for record in pack(body, partitions, options).records:
        log.setdefault(record.partition, []).append(record.value)
    return log


def test_each_series_goes_to_the_partition_of_its_key() -> None:
    body = body_of(*(up(number) for number in range(200)))
    rows = decoded(by_partition(body, 7))
    assert len(rows) == 200
    assert {partition for partition, _, _ in rows} == set(range(7))
    for partition, labels, _ in rows:
        assert partition == partition_of(labels, 7)


def test_counts_match_the_content_of_the_records() -> None:
    body = body_of(long_series("a", 10), long_series("b", 5), Series([("c", "d")], []))
    packed = pack(body, 3, OPTIONS)
    assert (packed.series, packed.samples, packed.without_samples) == (2, 15, 1)
    assert packed.record_bytes == sum(len(record.value) for record in packed.records)
    assert packed.dropped == ()


def test_a_request_for_one_partition_is_passed_on_unchanged() -> None:
    body = body_of(up(1), up(2))
    (record,) = pack(body, 1, OPTIONS).records
    assert record.value is body


def test_a_request_that_was_packed_badly_is_packed_again() -> None:
    request = encode_request([up(number) for number in range(50)])
    # The same block in literals of one byte each, as an unusual client may send it.
    header = compress(request)[:2]
    clumsy = header + b"".join(b"\x00" + request[at : at + 1] for at in range(len(request)))
    assert decompress(clumsy, limit=1 << 20) == request
    (record,) = pack(clumsy, 1, OPTIONS).records
    assert record.value == compress(request)


def test_labels_in_another_order_are_the_same_series() -> None:
    reordered = Series([("instance", "host-1"), ("__name__", "up")], [(1, 1.0)])
    assert decoded(by_partition(body_of(reordered), 5)) == decoded(by_partition(body_of(up(1)), 5))


def test_records_stay_below_their_size() -> None:
    options = GatewayOptions(max_record=2_000)
    packed = pack(body_of(*(up(number) for number in range(500))), 2, options)
    assert len(packed.records) > 10
    assert all(len(decompress(record.value, limit=2_000)) <= 2_000 for record in packed.records)


class TestDroppedSeries:
    def test_the_others_are_written_and_each_reason_has_its_count_and_an_example(self) -> None:
        duplicate = Series([("a", "1"), ("a", "2"), ("b", "3")], [(1, 1.0)])
        bare = Series([], [(1, 1.0)])
        other_duplicate = Series([("c", "1"), ("c", "2")], [(1, 1.0)])
        packed = pack(body_of(up(1), duplicate, other_duplicate, bare, up(2)), 4, OPTIONS)
        assert packed.series == 2
        assert {(drop.reason, drop.series, drop.example) for drop in packed.dropped} == {
            ("duplicate-name", 2, '{a="1", a="2", b="3"}'),
            ("no-labels", 1, "{}"),
        }
        message_text = str(loss_error(packed))
        assert "3 series dropped, the other 2 are written" in message_text

    @pytest.mark.parametrize(
        ("limits", "reason"),
        [
            (Limits(labels=1), "too-many-labels"),
            (Limits(label_name=7), "name-too-long"),
            (Limits(label_value=5), "value-too-long"),
        ],
    )
    def test_labels_over_a_limit_are_named(self, limits: Limits, reason: str) -> None:
        packed = pack(body_of(up(1), Series([("a", "b")], [(1, 1.0)])), 2, GatewayOptions(limits=limits))
        (drop,) = packed.dropped
        assert (drop.reason, drop.series, drop.example) == (reason, 1, '{__name__="up", instance="host-1"}')
        assert packed.series == 1

    def test_samples_that_shards_would_drop_are_dropped_and_the_others_written(self) -> None:
        mixed = Series([("__name__", "mixed")], [(5, 1.0), (15, 2.0), (16, 3.0), (25, 4.0), (26, 5.0)])
        old, ahead = up(1, time=4), up(2, time=99)
        packed = pack(body_of(up(3, time=20), mixed, old, ahead), 1, OPTIONS, TimeRange(15, 25))
        assert [(b"mixed" in labels, [time for time, _ in samples]) for _, labels, samples in written_in(packed)] == [
            (False, [20]),
            (True, [15, 16, 25]),
        ]
        assert (packed.series, packed.samples, packed.held, packed.shortened) == (2, 4, 4, 1)
        assert [(drop.reason, drop.series, drop.samples, drop.example) for drop in packed.dropped] == [
            ("too-old", 2, 2, '{__name__="mixed"}'),
            ("too-far-ahead", 2, 2, '{__name__="mixed"}'),
        ]
        message_text = str(loss_error(packed))
        assert "2 series dropped, the other 2 are written, 1 without some of their samples" in message_text
        assert "2 samples older than shard.max_sample_age allows, in 2 series" in message_text

    def test_a_series_with_samples_too_old_and_too_far_ahead_counts_once(self) -> None:
        packed = pack(body_of(Series([("a", "b")], [(1, 1.0), (99, 1.0)])), 1, OPTIONS, TimeRange(15, 25))
        assert (packed.records, packed.held, packed.shortened, len(packed.dropped)) == ((), 1, 0, 2)
        assert "1 series dropped, nothing was written" in str(loss_error(packed))

    def test_a_request_whose_samples_are_all_in_range_is_passed_on_unchanged(self) -> None:
        body = body_of(up(1, time=15), up(2, time=25))
        (record,) = pack(body, 1, OPTIONS, TimeRange(15, 25)).records
        assert record.value is body

    def test_text_that_is_not_utf8_is_shown_with_replacement_characters(self) -> None:
        request = RawWriteRequest()
        series = request.timeseries.add()
        series.labels.add(name=b"a", value=b"\xff\n")
        series.samples.add(value=1.0, timestamp=1)
        (drop,) = pack(compress(request.SerializeToString()), 2, OPTIONS).dropped
        assert (drop.reason, drop.example) == ("not-utf8", r'{a="\ufffd\n"}')

    def test_a_series_too_large_for_a_record_drops_no_other_series(self) -> None:
        options = GatewayOptions(max_record=5_000)
        packed = pack(body_of(up(1), long_series("giant", 1_000), up(2), long_series("titan", 1_000)), 4, options)
        (drop,) = packed.dropped
        assert (drop.reason, drop.series, drop.example) == ("too-large", 2, '{__name__="giant"}')
        assert packed.series == packed.samples == 2
        assert [labels for _, labels, _ in decoded({0: [record.value for record in packed.records]})]

    def test_too_large_and_malformed_labels_are_distinguished(self) -> None:
        options = GatewayOptions(max_record=5_000)
        packed = pack(body_of(Series([], [(1, 1.0)]), long_series("giant", 1_000), up(1)), 4, options)
        assert {(drop.reason, drop.series) for drop in packed.dropped} == {("no-labels", 1), ("too-large", 1)}
        assert packed.series == 1

    def test_a_request_without_valid_series_makes_no_record(self) -> None:
        packed = pack(body_of(Series([], [(1, 1.0)])), 4, OPTIONS)
        assert packed.records == ()
        assert "nothing was written" in str(loss_error(packed))


def test_skipped_fields_are_counted_and_are_no_error() -> None:
    request = WriteRequest()
    series = request.timeseries.add(exemplars=[b"\x09" + bytes(8)], histograms=[b"", b""])
    series.labels.add(name="a", value="b")
    request.metadata.append(b"")
    packed = pack(compress(request.SerializeToString()), 4, OPTIONS)
    assert (packed.exemplars, packed.histograms, packed.metadata, packed.without_samples) == (1, 2, 1, 1)
    assert packed.records == packed.dropped == ()


class TestRefusedRequests:
    def test_a_decompression_bomb_is_refused_before_it_is_decompressed(self) -> None:
        bomb = compress(bytes(40 << 20))
        assert len(bomb) < 4 << 20
        with pytest.raises(BadBlock, match="over the limit"):
            pack(bomb, 1, OPTIONS)

    def test_a_request_with_too_many_series_is_refused(self) -> None:
        body = body_of(up(1), up(2), Series([], [(1, 1.0)]))
        assert pack(body, 2, GatewayOptions(max_series=3)).series == 2
        with pytest.raises(BadRequest, match=r"3 series, over the limit of 2"):
            pack(body, 2, GatewayOptions(max_series=2))

    @pytest.mark.parametrize("body", [b"", b"\x05", b"sNaPpY", compress(b"\x0a\xff"), compress(b"hello")])
    def test_an_invalid_request_is_refused(self, body: bytes) -> None:
        with pytest.raises((BadBlock, BadRequest)):
            pack(body, 2, OPTIONS)


class TestLabelsAsText:
    def test_long_label_sets_are_truncated_and_stay_on_one_line(self) -> None:
        series = Series([(f"name\n{number}" + "n" * 1000, "v" * 10_000) for number in range(50)], [])
        text = labels_text(_content(series))
        assert len(text) < 500
        assert "\n" not in text
        assert text.endswith(", ...}")

    def test_only_the_first_fields_are_decoded(self) -> None:
        """There may be millions of fields, and other requests are waiting."""
        samples = _content(Series([], [(1, 1.0)] * 100))
        assert labels_text(samples + _content(Series([("a", "b")], []))) == "{}"

    def test_names_that_need_quotes_are_quoted_in_an_error(self) -> None:
        assert labels_text(_content(Series([("a b", 'say "x"')], []))) == r'{"a b"="say \"x\""}'


def written_in(packed: Packed) -> list[Any]:
    return [row for record in packed.records for row in decoded({record.partition: [record.value]})]


def _content(series: Series) -> bytes:
    message = WriteRequest.FromString(encode_request([series]))
    content: bytes = message.timeseries[0].SerializeToString()
    return content


_NAMES = st.sampled_from(["", "a", "b", "c", "__name__", "long" * 5])
_VALUES = st.sampled_from(["", "x", "y", "z" * 30])
_SERIES = st.builds(
    Series,
    labels=st.lists(st.tuples(_NAMES, _VALUES), max_size=5),
    samples=st.lists(st.tuples(st.integers(0, 1 << 40), st.floats(allow_nan=False)), max_size=12),
)


@given(st.lists(_SERIES, max_size=15), st.integers(1, 5), st.integers(60, 400))
def test_every_series_is_in_a_record_or_accounted_for(series: list[Series], partitions: int, max_record: int) -> None:
    options = GatewayOptions(max_record=max_record, limits=Limits(labels=3, label_name=16, label_value=20))
    body = body_of(*series)
    packed = pack(body, partitions, options)
    assert packed.series + packed.without_samples + sum(drop.series for drop in packed.dropped) == len(series)
    assert packed.held == len(series)
    decoded_body = decode_batch([body], options.limits)
    valid = [(labels, samples) for _, labels, samples in rows_of(decoded_body) if samples]
    large = sum(drop.series for drop in packed.dropped if drop.reason == "too-large")
    rows = decoded({record.partition: [] for record in packed.records})
    for record in packed.records:
        rows += decoded({record.partition: [record.value]})
    for partition, labels, samples in rows:
        assert partition == partition_of(labels, partitions)
        valid.remove((labels, samples))
    assert len(valid) <= large
    assert packed.samples == sum(len(samples) for _, _, samples in rows)


@given(
    st.lists(_SERIES, max_size=15), st.integers(1, 5), st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.booleans()
)
def test_only_samples_outside_the_time_range_are_dropped(
    series: list[Series], partitions: int, first: int, last: int, reordered: bool
) -> None:
    """Also for series whose fields have an unusual order."""
    request = WriteRequest.FromString(encode_request(series))
    message = b"".join(
        _field(_reordered(each) if reordered else each.SerializeToString()) for each in request.timeseries
    )
    unlimited = pack(compress(message), partitions, OPTIONS)
    packed = pack(compress(message), partitions, OPTIONS, TimeRange(first, last))

    def in_range(samples: Any) -> tuple[Any, ...]:
        return tuple(sample for sample in samples if first <= sample[0] <= last)

    expected = [(at, labels, in_range(samples)) for at, labels, samples in written_in(unlimited) if in_range(samples)]
    assert written_in(packed) == expected
    assert packed.held == len(series)
    assert packed.shortened == sum(0 < len(in_range(each.samples)) < len(each.samples) for each in series)
    assert sum(each.samples or 0 for each in packed.dropped) == sum(
        len(samples) - len(in_range(samples)) for each in series for samples in [each.samples]
    )


def _reordered(series: Any) -> bytes:
    """The series with its samples before its labels."""
    parts = [type(series)(samples=series.samples), type(series)(labels=series.labels)]
    return b"".join(part.SerializeToString() for part in parts)


def _field(content: bytes) -> bytes:
    return field(0x0A, content)
