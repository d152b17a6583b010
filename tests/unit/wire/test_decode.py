import struct

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from strandline.wire.columns import Columns
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.encoding import Series, encode_request
from strandline.wire.kernels.labels import Verdict
from strandline.wire.snappy import compress, decompress
from support.capture import captured_bodies
from support.decoding import canonical, compare
from support.remote_write import RawWriteRequest

pytestmark = pytest.mark.unit

LIMITS = Limits(labels=6, label_name=40, label_value=300)


def decode(*messages: bytes, limits: Limits = LIMITS) -> Columns:
    return decode_batch([compress(message) for message in messages], limits)


def one_series(*labels: tuple[str, str]) -> bytes:
    return encode_request([Series(labels, [(1000, 1.5)])])


# Names that repeat and are out of order often, texts of one to four bytes a character, lengths around 128.
NAMES = st.one_of(st.sampled_from(["", "a", "b", "__name__", "job", "é", "a" * 127, "z" * 130]), st.text(max_size=5))
VALUES = st.one_of(st.sampled_from(["", "1", "v" * 127, "v" * 128, "v" * 301, "€", "😀"]), st.text(max_size=5))
TIMES = st.integers(min_value=-(2**63), max_value=2**63 - 1)
FLOATS = st.integers(min_value=0, max_value=2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
SERIES = st.builds(
    Series,
    st.lists(st.tuples(NAMES, VALUES), max_size=8),
    st.lists(st.tuples(TIMES, FLOATS), max_size=3),
)


@given(st.lists(st.lists(SERIES, max_size=4), max_size=4))
def test_any_request_decodes_as_the_official_implementation_reads_it(batch: list[list[Series]]) -> None:
    messages = [encode_request(series) for series in batch]
    compare(decode(*messages), messages, LIMITS)


def test_real_traffic_decodes_as_the_official_implementation_reads_it() -> None:
    bodies = captured_bodies()
    limits = Limits()
    columns = decode_batch(bodies, limits)
    assert len(columns.time) == 40_000
    compare(columns, [decompress(body, limit=1 << 25) for body in bodies], limits)


def test_the_hashes_are_xxh3_of_the_part_key_and_of_the_metrics_name() -> None:
    columns = decode(
        one_series(("__name__", "up"), ("job", "x" * 250)),
        one_series(("zone", "b"), ("__name__", "up"), ("job", "x" * 250)),
        one_series(("job", "nameless")),
    )
    for row in range(3):
        digest = xxhash.xxh3_128_intdigest(columns.labels(row))
        assert (int(columns.key_high[row]) << 64) | int(columns.key_low[row]) == digest
    low_words = [xxhash.xxh3_128_intdigest(name) & (2**64 - 1) for name in (b"up", b"up", b"")]
    assert columns.metric.tolist() == low_words


def test_labels_in_any_order_are_the_same_part_key() -> None:
    labels = [("zone", "b"), ("__name__", "up"), ("empty", ""), ("job", "node")]
    columns = decode(one_series(*labels), one_series(*sorted(labels)), one_series(*reversed(labels)))
    assert len({columns.labels(row) for row in range(3)}) == 1
    assert columns.labels(0) == canonical([(name.encode(), value.encode()) for name, value in labels])
    assert len(set(columns.metric.tolist())) == 1


def bytes_field(tag: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([tag, len(content)]) + content


LABEL_A = bytes_field(0x0A, bytes_field(0x0A, b"a") + bytes_field(0x12, b"1"))
LABEL_B = bytes_field(0x0A, bytes_field(0x0A, b"b") + bytes_field(0x12, b"2"))
SAMPLE = bytes_field(0x12, struct.pack("<Bd", 0x09, 2.5) + b"\x10\x07")
CANONICAL = bytes_field(0x0A, LABEL_A + LABEL_B + SAMPLE)


@pytest.mark.parametrize(
    "series",
    {
        "value before name": bytes_field(0x0A, bytes_field(0x12, b"1") + bytes_field(0x0A, b"a")) + LABEL_B + SAMPLE,
        "sample before labels": SAMPLE + LABEL_A + LABEL_B,
        "sample between labels": LABEL_A + SAMPLE + LABEL_B,
        "long form of a length": b"\x0a\x86\x00" + LABEL_A[2:] + LABEL_B + SAMPLE,
        "long form of a name's length": b"\x0a\x07\x0a\x81\x00a\x12\x011" + LABEL_B + SAMPLE,
        "long form of a tag": b"\x8a\x00" + LABEL_A[1:] + LABEL_B + SAMPLE,
        "name given twice": bytes_field(0x0A, bytes_field(0x0A, b"x") + LABEL_A[2:]) + LABEL_B + SAMPLE,
        "unknown fields": LABEL_A + LABEL_B + b"\x28\x96\x01" + SAMPLE + bytes_field(0x7A, b"later") + b"\x6d1234",
        "unknown field in a label": bytes_field(0x0A, LABEL_A[2:] + b"\x18\x05") + LABEL_B + SAMPLE,
        "time before value": LABEL_A + LABEL_B + bytes_field(0x12, b"\x10\x07" + struct.pack("<Bd", 0x09, 2.5)),
        "unknown field in a sample": LABEL_A + LABEL_B + bytes_field(0x12, SAMPLE[2:] + b"\x19abcdefgh"),
    }.items(),
    ids=lambda item: item[0],
)
def test_an_unusual_encoding_gives_the_same_row_as_the_usual_one(series: tuple[str, bytes]) -> None:
    usual, unusual = CANONICAL, b"\x0a" + bytes([len(series[1])]) + series[1]
    columns = decode(usual, unusual)
    assert columns.faults == ()
    assert columns.labels(0) == columns.labels(1) == LABEL_A + LABEL_B
    assert columns.key_low[0] == columns.key_low[1]
    assert columns.time.tolist() == [7, 7]
    assert columns.value.tolist() == [2.5, 2.5]


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([], Verdict.NO_LABELS),
        ([("a", "")], Verdict.NO_LABELS),
        ([("", "x")], Verdict.EMPTY_NAME),
        ([("a", "1"), ("b", "1"), ("a", "2")], Verdict.DUPLICATE_NAME),
        ([("a", "1"), ("a", "1")], Verdict.DUPLICATE_NAME),
        ([(f"l{i}", "1") for i in range(7)], Verdict.TOO_MANY_LABELS),
        ([("n" * 41, "1")], Verdict.NAME_TOO_LONG),
        ([("a", "v" * 301)], Verdict.VALUE_TOO_LONG),
    ],
)
def test_a_series_that_can_not_be_a_part_key_is_dropped_and_counted(labels: list, reason: Verdict) -> None:
    good = Series([("a", "1")], [(1, 1.0)])
    columns = decode(encode_request([good, Series(labels, [(2, 2.0), (3, 3.0)]), good]))
    assert columns.faults == ()
    assert columns.skipped.series == {reason: 1}
    assert columns.time.tolist() == [1, 1]
    assert columns.first_sample.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "text", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"ab\xe2\x82", b"\x80", b"\xc3("]
)
@pytest.mark.parametrize("filler", [b"", b"x" * 60])
def test_labels_that_are_not_utf8_are_dropped(text: bytes, filler: bytes) -> None:
    request = RawWriteRequest()
    for name, value in ((b"a", filler + text), (b"a" + text, b"1")):
        series = request.timeseries.add()
        series.labels.add(name=name, value=value)
        series.samples.add(timestamp=1, value=1)
    columns = decode(request.SerializeToString())
    assert columns.skipped.series == {Verdict.NOT_UTF8: 2}
    assert len(columns.time) == 0


def test_histograms_exemplars_and_metadata_are_counted_and_skipped() -> None:
    request = RawWriteRequest(metadata=[b"1", b"2"])
    series = request.timeseries.add(exemplars=[b"1"], histograms=[b"1", b"2", b"3"])
    series.labels.add(name=b"a", value=b"1")
    series.samples.add(timestamp=5, value=1)
    columns = decode(request.SerializeToString())
    assert (columns.skipped.exemplars, columns.skipped.histograms, columns.skipped.metadata) == (1, 3, 2)
    assert columns.time.tolist() == [5]


def test_a_broken_record_leaves_a_fault_and_no_row_and_does_not_disturb_its_neighbours() -> None:
    good = one_series(("a", "1"))
    broken = encode_request([Series([("b", str(i))], [(i, 0.0)]) for i in range(50)])[:-3]
    columns = decode(good, broken, good)
    assert [fault.record for fault in columns.faults] == [1]
    assert "malformed in the field at byte" in columns.faults[0].reason
    assert columns.record.tolist() == [0, 2]
    assert columns.time.tolist() == [1000, 1000]


def test_every_truncation_is_a_fault_or_ends_between_series() -> None:
    message = encode_request([Series([("a", "1"), ("b", "€")], [(1, 1.0), (2, 2.0)]), Series([("c", "3")], [(3, 3.0)])])
    messages = [message[:length] for length in range(len(message) + 1)]
    compare(decode(*messages), messages, LIMITS)


def test_bodies_that_do_not_decompress_are_faults_with_a_reason() -> None:
    good = compress(one_series(("a", "1")))
    bodies = [good, b"", b"\x05\x10ab", b"\xff\xff\xff\xff\x0f", compress(bytes(2000)), good]
    columns = decode_batch(bodies, Limits(record_bytes=1000))
    assert [fault.record for fault in columns.faults] == [1, 2, 3, 4]
    assert "no valid length" in columns.faults[0].reason
    assert "damaged" in columns.faults[1].reason
    assert "4294967295, over the limit of 1000" in columns.faults[2].reason
    assert columns.record.tolist() == [0, 5]


def test_rows_that_exceed_every_estimate_are_complete() -> None:
    # The shortest sample takes two bytes, the first estimate assumes far more.
    series = LABEL_A + b"\x12\x00" * 50_000
    message = encode_request([]) + b"\x0a" + varint(len(series)) + series
    many = encode_request([Series([("a", chr(65 + i % 26))], []) for i in range(20_000)])
    columns = decode(CANONICAL, message, many, CANONICAL)
    assert columns.faults == ()
    assert len(columns.time) == 50_002
    assert len(columns.record) == 20_003
    assert np.diff(columns.first_sample)[[0, 1, -1]].tolist() == [1, 50_000, 1]


def varint(number: int) -> bytes:
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def test_an_empty_batch_has_no_rows() -> None:
    columns = decode()
    assert len(columns.record) == 0
    assert columns.first_sample.tolist() == [0]


def test_limits_above_those_of_lucene_or_the_sorting_are_refused() -> None:
    with pytest.raises(ValueError, match="label_value = 40000 must lie between 1 and 32766"):
        Limits(label_value=40_000)
    with pytest.raises(ValueError, match="labels = 0"):
        Limits(labels=0)
