import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.wire.decode import Limits, decode_batch
from strandline.wire.encoding import Series, encode_request
from strandline.wire.kernels.labels import Verdict
from strandline.wire.kernels.split import HEADER, MIN_KEPT_BYTES, SPLIT_COUNTS, plan_series
from strandline.wire.snappy import compress, decompress
from strandline.wire.splitting import ROW_TYPES, BadRequest, SeriesTooLarge, Split, split_request
from support.capture import captured_bodies
from support.decoding import canonical
from support.remote_write import RawWriteRequest
from support.splitting import compare_splits, partition_of

pytestmark = pytest.mark.unit

LIMITS = Limits(labels=6, label_name=140, label_value=300)


def split(message: bytes, partitions: int = 8, **settings: int) -> Split:
    return split_request(message, partitions, LIMITS, **settings)


def field(tag: int, content: bytes) -> bytes:
    rest, length = len(content), b""
    while rest >= 0x80:
        length, rest = length + bytes([rest & 0x7F | 0x80]), rest >> 7
    return bytes([tag]) + length + bytes([rest]) + content


def label(name: str, value: str) -> bytes:
    return field(0x0A, field(0x0A, name.encode()) + field(0x12, value.encode()))


def series(*fields: bytes) -> bytes:
    return field(0x0A, b"".join(fields))


SAMPLE = field(0x12, struct.pack("<Bd", 0x09, 2.5) + b"\x10\x07")
LATER_SAMPLE = field(0x12, struct.pack("<Bd", 0x09, 3.5) + b"\x10\x08")
EXEMPLAR, HISTOGRAM, METADATA, UNKNOWN = field(0x1A, b"ex"), field(0x22, b"hi"), field(0x1A, b"me"), b"\x28\x96\x01"
A, B = label("a", "1"), label("b", "2")

# Labels in order, labels out of order, and all fields that may be between and around them.
NAMES = st.one_of(st.sampled_from(["", "a", "b", "__name__", "job", "é", "a" * 127, "z" * 130]), st.text(max_size=5))
VALUES = st.one_of(st.sampled_from(["", "1", "v" * 127, "v" * 128, "v" * 301, "€"]), st.text(max_size=5))
PAIRS = st.tuples(NAMES, VALUES)
TIMES = st.integers(min_value=-(2**63), max_value=2**63 - 1)
REQUESTS_OF_VALUES = st.lists(
    st.builds(
        Series,
        st.lists(PAIRS, max_size=7).map(lambda pairs: sorted(dict(pairs).items())),
        st.lists(st.tuples(TIMES, st.floats()), max_size=3),
    ),
    max_size=8,
).map(encode_request)
SERIES_OF_FIELDS = st.lists(
    st.one_of(
        PAIRS.map(lambda pair: label(*pair)),
        st.sampled_from([A, B, SAMPLE, LATER_SAMPLE, b"\x12\x00", EXEMPLAR, HISTOGRAM, UNKNOWN]),
        st.binary(max_size=3).map(lambda content: field(0x12, content)),
    ),
    max_size=8,
).map(lambda fields: series(*fields))
REQUESTS_OF_FIELDS = st.lists(
    st.one_of(SERIES_OF_FIELDS, st.sampled_from([METADATA, UNKNOWN, series(A, SAMPLE)])), max_size=8
).map(b"".join)


@given(st.one_of(REQUESTS_OF_VALUES, REQUESTS_OF_FIELDS), st.integers(min_value=1, max_value=9))
def test_the_parts_decode_to_the_rows_of_the_request_each_in_the_partition_of_its_key(
    message: bytes, partitions: int
) -> None:
    compare_splits([message], partitions, LIMITS)


SMALL_SERIES = st.builds(
    Series,
    st.lists(st.tuples(st.sampled_from("abc"), st.text(min_size=1, max_size=9)), min_size=1, max_size=3),
    st.lists(st.tuples(TIMES, st.floats()), max_size=5),
)


@given(st.lists(SMALL_SERIES, max_size=30), st.sampled_from([1, 2, 5]), st.integers(min_value=300, max_value=900))
def test_parts_of_bounded_size_decode_to_the_same_rows(some: list[Series], partitions: int, max_bytes: int) -> None:
    compare_splits([encode_request(some)], partitions, LIMITS, max_bytes)


def test_real_traffic_splits_into_parts_that_decode_to_the_same_rows() -> None:
    messages = [decompress(body, limit=1 << 25) for body in captured_bodies()]
    splits = compare_splits(messages, 8, Limits())
    assert len(splits) == len(messages)
    samples = [part.samples for part_split in splits.values() for part in part_split.parts]
    assert sum(samples) == 40_000


def test_canonical_series_are_copied_byte_by_byte_in_their_order() -> None:
    fields = [series(label("a", str(i)), B, SAMPLE, *[EXEMPLAR, HISTOGRAM, UNKNOWN][: i % 4]) for i in range(100)]
    keys = [canonical([(b"a", str(i).encode()), (b"b", b"2")]) for i in range(100)]
    wanted = {
        p: b"".join(copied for copied, key in zip(fields, keys, strict=True) if partition_of(key, 8) == p)
        for p in range(8)
    }
    assert all(wanted.values())
    parts = split(b"".join(fields)).parts
    assert {part.partition: part.body for part in parts} == wanted


def test_a_field_whose_header_is_longer_than_necessary_is_copied_unchanged() -> None:
    odd = b"\x8a\x00\x95\x00" + A + SAMPLE
    assert len(A + SAMPLE) == 0x15
    (part,) = split(odd + METADATA).parts
    assert part.body == odd


@pytest.mark.parametrize(
    ("unusual", "rewritten"),
    [
        ((B, A, SAMPLE), (A, B, SAMPLE)),
        ((SAMPLE, A, B), (A, B, SAMPLE)),
        ((A, SAMPLE, B, LATER_SAMPLE), (A, B, SAMPLE, LATER_SAMPLE)),
        ((A, B, SAMPLE, label("c", "")), (A, B, SAMPLE)),
        ((A, label("c", ""), B, SAMPLE), (A, B, SAMPLE)),
        ((b"\x0a\x86\x00" + A[2:], B, SAMPLE), (A, B, SAMPLE)),
        ((b"\x8a\x00" + A[1:], B, SAMPLE), (A, B, SAMPLE)),
        ((EXEMPLAR, B, UNKNOWN, A, SAMPLE, HISTOGRAM), (A, B, EXEMPLAR, UNKNOWN, SAMPLE, HISTOGRAM)),
    ],
)
def test_only_labels_that_are_not_canonical_are_rewritten(unusual: tuple, rewritten: tuple) -> None:
    usual = series(A, B, SAMPLE)
    parts = split(series(*unusual) + usual).parts
    assert [part.body for part in parts] == [series(*rewritten) + usual]


@pytest.mark.parametrize("length", [127, 128, 129, 16_383, 16_384, 2_097_151, 2_097_152])
def test_a_rewritten_series_has_a_header_with_its_length(length: int) -> None:
    room = length - len(A + B + SAMPLE)
    filler = next(filler for header in range(2, 6) if len(filler := field(0x7A, bytes(room - header))) == room)
    (part,) = split(series(B, A, SAMPLE, filler), max_bytes=1 << 25).parts
    assert part.body == field(0x0A, A + B + SAMPLE + filler)
    assert len(A + B + SAMPLE + filler) == length


def test_many_rewritten_series_do_not_affect_each_other() -> None:
    messages = [series(SAMPLE * (i % 20 + 1), B, label("a", str(i))) for i in range(500)]
    compare_splits([b"".join(messages)], 8, LIMITS)


def test_the_order_of_labels_does_not_change_the_partition() -> None:
    for i in range(50):
        a = label("a", str(i))
        (one,), (other,) = split(series(a, B, SAMPLE)).parts, split(series(B, a, SAMPLE)).parts
        assert one == other


@pytest.mark.parametrize(
    "message",
    {
        "plain": series(A, B, SAMPLE) + series(B, SAMPLE),
        "with exemplars, histograms and fields of a later protocol": series(A, SAMPLE, EXEMPLAR, HISTOGRAM, UNKNOWN),
        "with samples apart": series(A, SAMPLE, EXEMPLAR, LATER_SAMPLE),
        "with a long name": series(label("n" * 130, "1"), SAMPLE),
    }.items(),
    ids=lambda item: item[0],
)
def test_a_request_that_goes_to_one_partition_unchanged_is_not_copied(message: tuple[str, bytes]) -> None:
    (part,) = split(message[1], 1).parts
    assert part.body is message[1]


def test_a_request_in_one_part_is_copied_if_something_of_it_changes() -> None:
    unsorted = series(B, A, SAMPLE)
    (part,) = split(unsorted, 1).parts
    assert part.body == series(A, B, SAMPLE)
    (part,) = split(series(A, SAMPLE) + UNKNOWN, 1).parts
    assert part.body == series(A, SAMPLE)


def test_series_that_decoding_drops_are_dropped_and_counted_by_reason() -> None:
    labels = {
        Verdict.NO_LABELS: [("a", "")],
        Verdict.EMPTY_NAME: [("", "x")],
        Verdict.DUPLICATE_NAME: [("a", "1"), ("a", "2")],
        Verdict.TOO_MANY_LABELS: [(f"l{i}", "1") for i in range(7)],
        Verdict.NAME_TOO_LONG: [("n" * 141, "1")],
        Verdict.VALUE_TOO_LONG: [("a", "v" * 301)],
    }
    dropped = [series(*(label(*pair) for pair in pairs), SAMPLE) for pairs in labels.values()]
    no_text = series(field(0x0A, field(0x0A, b"a") + field(0x12, b"\xff")), SAMPLE)
    kept = series(A, SAMPLE)
    result = split(kept.join([b"", *dropped, no_text, b""]))
    assert result.skipped.series == dict.fromkeys([*labels, Verdict.NOT_UTF8], 1)
    assert result.without_samples == 0
    assert [(part.body, part.series, part.samples) for part in result.parts] == [(kept * 8, 8, 8)]


def test_series_without_samples_are_dropped_and_counted_apart() -> None:
    histogram_only = series(A, HISTOGRAM, HISTOGRAM, EXEMPLAR)
    no_key_either = series(label("a", ""), EXEMPLAR)
    result = split(series(A) + histogram_only + series(A, SAMPLE, HISTOGRAM) + no_key_either + series(B, A))
    assert result.without_samples == 3
    assert result.skipped.series == {Verdict.NO_LABELS: 1}
    # The shard counts those of the series that is kept.
    assert (result.skipped.histograms, result.skipped.exemplars) == (2, 2)
    assert [part.body for part in result.parts] == [series(A, SAMPLE, HISTOGRAM)]


def test_metadata_is_counted_and_dropped() -> None:
    request = RawWriteRequest(metadata=[b"1", b"2"])
    timeseries = request.timeseries.add()
    timeseries.labels.add(name=b"a", value=b"1")
    timeseries.samples.add(timestamp=1, value=1)
    result = split(request.SerializeToString())
    assert result.skipped.metadata == 2
    (part,) = result.parts
    assert len(RawWriteRequest.FromString(part.body).metadata) == 0


def test_a_request_with_nothing_to_keep_has_no_parts() -> None:
    assert split(b"").parts == ()
    assert split(METADATA + series(A)).parts == ()


def test_a_part_that_would_be_too_large_is_split_between_series() -> None:
    fields = [series(label("a", chr(65 + i)), SAMPLE) for i in range(10)]
    size = len(fields[0])
    for max_bytes, sizes in ((3 * size, [3, 3, 3, 1]), (4 * size - 1, [3, 3, 3, 1]), (size, [1] * 10)):
        parts = split(b"".join(fields), 1, max_bytes=max_bytes).parts
        assert [part.series for part in parts] == sizes
        assert b"".join(part.body for part in parts) == b"".join(fields)
        assert {part.partition for part in parts} == {0}


def test_a_series_that_is_too_large_alone_is_refused_by_name() -> None:
    small, large = series(A, SAMPLE), series(label("b", 'say "€"'), A, SAMPLE * 30)
    assert split(small + large, max_bytes=len(large)).parts
    with pytest.raises(SeriesTooLarge) as refusal:
        split(small + large, max_bytes=len(large) - 1)
    name = '{a="1", b="say \\"€\\""}'
    assert refusal.value.message == (
        f"the series {name} takes {len(large)} bytes, over the limit of {len(large) - 1} for one part"
    )


def test_a_long_name_of_a_series_that_is_too_large_is_truncated() -> None:
    with pytest.raises(SeriesTooLarge) as refusal:
        split(series(label("a", "v" * 300), label("b", "w" * 300), SAMPLE), max_bytes=100)
    assert 'a="vvv' in refusal.value.message
    assert "...}" in refusal.value.message
    assert "www" not in refusal.value.message


def test_a_malformed_request_is_refused_as_such_even_with_a_series_that_is_too_large() -> None:
    with pytest.raises(BadRequest, match="malformed in the field at byte 23"):
        split(series(A, SAMPLE) + b"\x0a", max_bytes=10)


def test_every_truncation_is_refused_as_decoding_refuses_it_or_ends_between_series() -> None:
    message = series(B, A, SAMPLE, EXEMPLAR) + METADATA + series(A, SAMPLE, SAMPLE) + UNKNOWN + series(label("c", "€"))
    splits = compare_splits([message[:end] for end in range(len(message) + 1)], 3, LIMITS)
    assert 0 < len(splits) < 10


@pytest.mark.parametrize(
    "broken",
    {
        "a tag": b"\xff" * 11,
        "a length past the end": b"\x0a\x7f" + A,
        "a group": b"\x0b\x0c",
        "metadata past the end": b"\x1a\x05",
        "a sample behind canonical labels": series(A, field(0x12, b"\x09")),
        "a later sample behind canonical labels": series(A, SAMPLE, field(0x12, b"\x10\x80")),
        "a sample past the series' end": series(A, b"\x12\x05"),
        "a sample before the labels": series(field(0x12, b"\x09"), A),
        "a label": series(field(0x0A, b"\x0a\x05a")),
        "a label behind sound ones": series(A, SAMPLE, field(0x0A, b"\x0a\x05a")),
        "an exemplar past the series' end": series(A, SAMPLE, b"\x1a\x05"),
        "a sample of a series that is dropped": series(label("", "1"), field(0x12, b"\x09")),
    }.items(),
    ids=lambda item: item[0],
)
def test_a_malformed_field_is_refused_as_decoding_refuses_it(broken: tuple[str, bytes]) -> None:
    messages = [before + broken[1] for before in (b"", series(A, SAMPLE), series(B, A, SAMPLE))]
    assert compare_splits(messages, 3, LIMITS) == {}


def test_a_request_over_the_limit_is_refused_as_decoding_refuses_it() -> None:
    message = series(A, SAMPLE) * 10
    limits = Limits(record_bytes=len(message) - 1)
    assert len(decode_batch([compress(message)], limits).faults) == 1
    with pytest.raises(BadRequest, match=f"{len(message)} bytes, over the limit of {len(message) - 1}"):
        split_request(message, 8, limits)


@pytest.mark.parametrize(("partitions", "max_bytes"), [(0, 100), (-1, 100), (8, 0)])
def test_impossible_numbers_of_partitions_and_bytes_are_refused(partitions: int, max_bytes: int) -> None:
    with pytest.raises(ValueError, match=f"partitions = {partitions} and max_bytes = {max_bytes}"):
        split(b"", partitions, max_bytes=max_bytes)


@pytest.mark.parametrize(
    "field_of_series",
    {
        "the shortest": series(label("a", "1"), b"\x12\x00"),
        "the shortest that is written anew": series(b"\x12\x00", label("a", "1")),
        "one that is written and thrown away": series(label("n" * 130, "1"), b"\x12\x00"),
        "one of three labels": series(b"\x12\x00", label("b", "1"), label("a", "1"), label("c", "1")),
    }.items(),
    ids=lambda item: item[0],
)
def test_no_series_needs_more_room_than_the_kernel_requests(field_of_series: tuple[str, bytes]) -> None:
    message = field_of_series[1] * 1000
    rows_needed, spare_needed = len(message) // MIN_KEPT_BYTES, 2 * len(message) + HEADER
    # Guard bytes after the room that the kernel needs, which it must not overwrite.
    rows = tuple(np.full(rows_needed + 50, 77, dtype=kind) for kind in ROW_TYPES)
    spare = np.full(spare_needed + 5000, 77, dtype=np.uint8)
    n_rows, _, fault_at = plan_series(
        np.frombuffer(message, dtype=np.uint8),
        8,
        (LIMITS.labels, LIMITS.label_name, LIMITS.label_value),
        tuple(column[:rows_needed] for column in rows),
        spare[:spare_needed],
        np.zeros(SPLIT_COUNTS, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )
    assert (n_rows, fault_at) == (1000, -1)
    assert all((column[rows_needed:] == 77).all() for column in rows)
    assert (spare[spare_needed:] == 77).all()
