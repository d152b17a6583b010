import struct
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.jobs.landing.packing import Packed, pack
from strandline.jobs.sample_block import SampleBlock
from strandline.recovery.periods import HOUR
from strandline.time_range import ALL_TIMES, EARLIEST, LATEST, TimeRange
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.snappy import decompress
from strandline.wire.splitting import MAX_PART_BYTES
from support.decoding import rows_of
from support.remote_write import WriteRequest
from support.sample_blocks import block_of, canonical_labels
from support.splitting import partition_of

pytestmark = pytest.mark.unit

WIDE = Limits(record_bytes=MAX_PART_BYTES, labels=256, label_name=32_766, label_value=32_766)
NOON = 1_700_000_000_000 // HOUR * HOUR

LABEL_SETS = st.dictionaries(
    st.one_of(st.sampled_from(["__name__", "job", "é"]), st.text("abcxyz", min_size=1, max_size=3)),
    st.one_of(st.text(min_size=1, max_size=5), st.sampled_from(["v" * 127, "v" * 128])),
    min_size=1,
    max_size=4,
).map(lambda labels: tuple(sorted(labels.items())))
TIMES = st.one_of(
    st.integers(NOON, NOON + 5),
    st.integers(NOON - 3 * HOUR, NOON + 3 * HOUR),
    st.integers(-HOUR - 1, HOUR + 1),
    st.integers(EARLIEST + 1, LATEST - 1),
)
BLOCKS = st.lists(LABEL_SETS, min_size=1, max_size=6, unique=True).flatmap(
    lambda series: st.builds(
        block_of,
        st.just(series),
        st.lists(st.tuples(st.integers(0, len(series) - 1), TIMES, st.floats()), max_size=60),
    )
)


def series_in(block: SampleBlock) -> list[bytes]:
    starts = block.series.starts.tolist()
    return [block.series.labels[start:end].tobytes() for start, end in pairwise(starts)]


def samples_in(block: SampleBlock) -> dict[bytes, list[tuple[int, bytes]]]:
    """The samples of each series by hour, within an hour in the order of the source."""
    found = defaultdict(list)
    labels = series_in(block)
    for row, time, value in zip(block.row.tolist(), block.times.tolist(), block.values, strict=True):
        found[labels[row]].append((time, value.tobytes()))
    return {labels: sorted(samples, key=lambda sample: sample[0] // HOUR) for labels, samples in found.items()}


def check(packed: Packed, block: SampleBlock, partitions: int, max_bytes: int = MAX_PART_BYTES) -> None:
    """Check everything that holds if no sample was skipped."""
    columns = decode_batch([record.value for record in packed.records], WIDE)
    assert columns.faults == ()
    assert not columns.skipped.series
    found = defaultdict(list)
    order = defaultdict(list)
    for record, labels, samples in rows_of(columns):
        partition = packed.records[record].partition
        assert partition == partition_of(labels, partitions)
        found[labels].extend(samples)
        order[partition].extend(time // HOUR for time, _ in samples)
    assert found == samples_in(block)
    assert all(hours == sorted(hours) for hours in order.values())
    for record in packed.records:
        body = decompress(record.value, limit=max_bytes)
        request = WriteRequest.FromString(body)
        assert len(request.timeseries) == record.series > 0
        assert sum(len(series.samples) for series in request.timeseries) == record.samples > 0
    assert [record.partition for record in packed.records] == sorted(record.partition for record in packed.records)
    assert packed.samples == sum(record.samples for record in packed.records) == len(block.row)
    assert packed.series == len(found)
    assert packed.hours == Counter((block.times // HOUR).tolist())
    assert list(packed.hours) == sorted(packed.hours)
    assert packed.bad.total == 0


@given(BLOCKS, st.integers(1, 9))
def test_decoding_the_records_gives_the_samples_of_the_block(block: SampleBlock, partitions: int) -> None:
    check(pack(block, partitions, ALL_TIMES), block, partitions)


@given(BLOCKS, st.integers(1, 3), st.integers(1_200, 1_400))
def test_records_of_bounded_size_hold_the_same_samples(block: SampleBlock, partitions: int, max_bytes: int) -> None:
    check(pack(block, partitions, ALL_TIMES, max_bytes=max_bytes), block, partitions, max_bytes)


@given(BLOCKS)
def test_the_official_implementation_reads_the_same_samples(block: SampleBlock) -> None:
    found = defaultdict(list)
    for record in pack(block, 2, ALL_TIMES).records:
        for series in WriteRequest.FromString(decompress(record.value, limit=MAX_PART_BYTES)).timeseries:
            labels = canonical_labels([(label.name, label.value) for label in series.labels])
            found[labels].extend((sample.timestamp, struct.pack("<d", sample.value)) for sample in series.samples)
    assert found == samples_in(block)


def test_samples_with_equal_times_keep_the_order_of_the_source() -> None:
    samples = [(1, NOON, 1.0), (0, NOON, 2.0), (1, NOON, 3.0), (0, NOON - 1, 4.0), (1, NOON, 5.0)]
    block = block_of([[("a", "1")], [("b", "2")]], samples)
    rows = rows_of(decode_batch([record.value for record in pack(block, 1, ALL_TIMES).records], WIDE))
    values = [[struct.unpack("<d", value)[0] for _, value in samples] for _, _, samples in rows]
    assert values == [[4.0, 2.0], [1.0, 3.0, 5.0]]


def test_an_empty_block_gives_no_record() -> None:
    packed = pack(block_of([], []), 4, ALL_TIMES)
    assert packed == Packed((), 0, 0, {}, packed.bad)
    assert packed.bad.total == 0


def test_one_giant_series_is_divided_over_records_each_with_its_labels() -> None:
    count = 150_000
    block = block_of([[("__name__", "giant")]], [(0, NOON + position, float(position)) for position in range(count)])
    packed = pack(block, 5, ALL_TIMES)
    assert len(packed.records) == 4
    sizes = [len(decompress(record.value, limit=MAX_PART_BYTES)) for record in packed.records]
    assert min(sizes[:-1]) > MAX_PART_BYTES - 30
    check(packed, block, 5)


def test_a_series_that_fills_a_record_to_its_last_byte_stays_whole() -> None:
    block = block_of([[("a", "v" * 200)]], [(0, NOON + position, 1.0) for position in range(50)])
    (whole,) = pack(block, 1, ALL_TIMES).records
    size = len(decompress(whole.value, limit=MAX_PART_BYTES))
    assert len(pack(block, 1, ALL_TIMES, max_bytes=size).records) == 1
    cut = pack(block, 1, ALL_TIMES, max_bytes=size - 1)
    assert [record.samples for record in cut.records] == [49, 1]
    check(cut, block, 1, size - 1)


def test_label_sets_at_the_limits_of_the_shards_are_packed() -> None:
    large = [(f"{number:04}" + "n" * 505, "v" * 4_096) for number in range(64)]
    block = block_of([large, [("a", "1")]], [(0, NOON, 1.0), (1, NOON, 2.0), (0, NOON + HOUR, 3.0), (0, NOON, 4.0)])
    check(pack(block, 2, ALL_TIMES), block, 2)


def test_labels_that_fit_into_no_record_are_bad_records() -> None:
    large = [(f"{number:04}", "v" * 32_000) for number in range(30)]
    block = block_of([large, [("a", "1")]], [(0, NOON, 1.0), (1, NOON, 2.0), (0, NOON, 3.0)])
    packed = pack(block, 2, ALL_TIMES)
    assert packed.bad.counts == {"labels too large for one record": 2}
    (example,) = packed.bad.examples
    assert example.excerpt.startswith('2023-11-14T22:00:00.000Z {"0000"="vvvv')
    assert (packed.samples, packed.series, packed.hours) == (1, 1, {NOON // HOUR: 1})


def test_samples_outside_the_times_are_dropped_and_counted_with_a_series_for_each_reason() -> None:
    samples = [(0, NOON - 1, 1.0), (0, NOON, 2.0), (1, NOON + 10, 3.0), (1, NOON + 11, 4.0), (1, NOON - 9, 5.0)]
    block = block_of([[("__name__", "up"), ("job", "x")], [("__name__", "down")]], samples)
    packed = pack(block, 3, TimeRange(NOON, NOON + 10), offset=77)
    assert packed.bad.counts == {"older than the dataset's retention": 2, "too far ahead": 1}
    old, ahead = packed.bad.examples
    assert (old.offset, old.reason) == (77, "older than the dataset's retention")
    assert old.excerpt == '2023-11-14T21:59:59.999Z {__name__="up", job="x"}'
    assert ahead.excerpt == '2023-11-14T22:00:00.011Z {__name__="down"}'
    kept = block_of([[("__name__", "up"), ("job", "x")], [("__name__", "down")]], samples[1:3])
    found = pack(kept, 3, ALL_TIMES)
    assert (packed.records, packed.hours, packed.series) == (found.records, found.hours, 2)


def test_a_series_without_a_sample_in_the_times_does_not_count() -> None:
    block = block_of([[("a", "1")], [("b", "1")]], [(0, NOON, 1.0), (1, NOON - 1, 1.0)])
    assert pack(block, 1, TimeRange(NOON, LATEST)).series == 1


def test_the_ends_of_the_integer_range_are_never_sample_times() -> None:
    block = block_of([[("a", "1")]], [(0, EARLIEST, 1.0), (0, LATEST, 2.0), (0, EARLIEST + 1, 3.0)])
    packed = pack(block, 1, ALL_TIMES)
    assert (packed.samples, packed.bad.total) == (1, 2)
    assert packed.bad.examples[0].excerpt == f'{EARLIEST} ms {{a="1"}}'


def test_every_bit_of_a_value_is_kept() -> None:
    stale = np.array([0x7FF0000000000002], dtype=np.uint64).view(np.float64)[0]
    block = block_of([[("a", "1")]], [(0, NOON, stale), (0, NOON + 1, -0.0)])
    check(pack(block, 1, ALL_TIMES), block, 1)


@pytest.mark.parametrize(("partitions", "max_bytes"), [(0, 1_000), (1, 0), (1, 3_000_000)])
def test_impossible_partitions_and_sizes_are_refused(partitions: int, max_bytes: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        pack(block_of([], []), partitions, ALL_TIMES, max_bytes=max_bytes)
