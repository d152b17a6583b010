"""Packing: encodes a block of samples as compressed remote-write records, each for one partition. Pure.

Samples are sorted by UTC hour and then by series, so that the segments that a shard makes of them overlap little. The
sort is stable, so of samples with equal times the last one in the source wins. Series are partitioned as by the gateway
(`strandline.wire.splitting`). Unlike there, a series may be divided over records, each with its labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s
from strandline.jobs.bad_records import MAX_EXCERPT, BadRecord, BadRecords
from strandline.jobs.landing.kernels.order import (
    KEPT,
    OUTCOMES,
    TOO_FAR_AHEAD,
    TOO_LARGE,
    TOO_OLD,
    choose_samples,
    sort_stably,
)
from strandline.jobs.landing.kernels.requests import MAX_ALONE, plan_pieces, write_pieces
from strandline.jobs.sample_block import SampleBlock, SeriesColumns
from strandline.recovery.periods import HOUR
from strandline.time_range import EARLIEST, LATEST, TimeRange
from strandline.wire.label_texts import labels_text
from strandline.wire.record_headers import RecordHeaders
from strandline.wire.snappy import compress
from strandline.wire.splitting import MAX_PART_BYTES

_REASONS = {
    TOO_OLD: "older than the dataset's retention",
    TOO_FAR_AHEAD: "too far ahead",
    TOO_LARGE: "labels too large for one record",
}

_MAX_RECORD_BYTES = 2_000_000
"""So that lengths within a record take at most three bytes."""

# Column types in the order in which the kernels fill them.
_PIECE_TYPES = ("i8", "i4", "i8", "i4")
_RECORD_TYPES = ("i4", "i8", "i8", "i8")
_Columns = tuple[npt.NDArray[Any], ...]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PackedRecord:
    """A Kafka record: a compressed `WriteRequest`, with its number of samples and of `TimeSeries`."""

    partition: int
    value: bytes
    samples: int
    series: int

    @property
    def key(self) -> None:
        """None: the partition depends on the series."""
        return

    @property
    def headers(self) -> RecordHeaders:
        """No headers in addition to those of the chunk."""
        return []


@dataclass(frozen=True, slots=True)
class Packed:
    """The records of a block, and the counts of their content.

    Records are ordered by partition, and within a partition by time. `hours` is the number of samples by UTC hour, as
    hours since the epoch. `series` is the number of distinct series that have a packed sample. `bad` counts the samples
    that were skipped, without the bad records that the parser found.
    """

    records: tuple[PackedRecord, ...]
    samples: int
    series: int
    hours: Mapping[int, int]
    bad: BadRecords


def pack(
    block: SampleBlock, partitions: int, times: TimeRange, *, offset: int = 0, max_bytes: int = MAX_PART_BYTES
) -> Packed:
    """Pack the samples within `times` into records of at most `max_bytes` before compression.

    `offset` is the position of the block in its source, for the examples of skipped samples.
    """
    if partitions < 1 or not 0 < max_bytes <= _MAX_RECORD_BYTES:
        raise ValueError(
            f"partitions = {partitions} must be 1 or more, and max_bytes = {max_bytes} from 1 to {_MAX_RECORD_BYTES}"
        )
    series = block.series
    chosen, bad = _chosen(block, times, offset, max_bytes)
    if len(chosen) == 0:
        return Packed((), 0, 0, {}, bad)
    hours, hour_of = _hours(block.times, chosen)
    ordered, of_series, of_hour = np.empty_like(chosen), _counts(len(series)), _counts(len(hours))
    sort_stably(block.row, chosen, of_series, ordered)
    sort_stably(hour_of, ordered, of_hour, chosen)
    return Packed(
        records=_records(block, chosen, partitions, max_bytes),
        samples=len(chosen),
        series=int(np.count_nonzero(of_series)),
        hours={hour: samples for hour, samples in zip(hours.tolist(), of_hour.tolist(), strict=True) if samples},
        bad=bad,
    )


def _chosen(
    block: SampleBlock, times: TimeRange, offset: int, max_bytes: int
) -> tuple[npt.NDArray[np.int32], BadRecords]:
    """The indices of the samples that land, in their order, and the others as bad records."""
    is_large = np.diff(block.series.starts) + MAX_ALONE > max_bytes
    chosen = np.empty(len(block.row), dtype=np.int32)
    counts, first = _counts(OUTCOMES), _counts(OUTCOMES)
    # The two ends of the integer range are not valid sample times for shards.
    bounds = max(times.first, EARLIEST + 1), min(times.last, LATEST - 1)
    n_chosen = choose_samples(block.row, block.times, is_large, *bounds, chosen, counts, first)
    left_out = [(outcome, reason) for outcome, reason in _REASONS.items() if outcome != KEPT and counts[outcome]]
    return chosen[:n_chosen], BadRecords(
        {reason: int(counts[outcome]) for outcome, reason in left_out},
        tuple(sorted(BadRecord(offset, 0, reason, _excerpt(block, first[outcome])) for outcome, reason in left_out)),
    )


def _hours(times: I64s, chosen: npt.NDArray[np.int32]) -> tuple[I64s, npt.NDArray[np.int32]]:
    """The hours of the chosen samples (possibly with others between them), oldest first, and for each sample of the
    block the index of its hour; undefined for samples that were not chosen.
    """
    hours = times // HOUR
    of_chosen = hours[chosen] if len(chosen) < len(times) else hours
    oldest, newest = int(of_chosen.min()), int(of_chosen.max())
    if newest - oldest <= len(times):
        # For samples that were not chosen, the difference may exceed 32 bits; the kernel does not read it.
        return np.arange(oldest, newest + 1), (hours - oldest).astype(np.int32)
    distinct, indices = np.unique(of_chosen, return_inverse=True)
    index = np.zeros(len(times), dtype=np.int32)
    index[chosen] = indices
    return distinct, index


def _records(
    block: SampleBlock, ordered: npt.NDArray[np.int32], partitions: int, max_bytes: int
) -> tuple[PackedRecord, ...]:
    series = block.series
    # Allocated for the worst case: pages that are not written cost nothing.
    pieces: _Columns = tuple(np.empty(len(ordered), dtype=kind) for kind in _PIECE_TYPES)
    records: _Columns = tuple(np.empty(len(ordered), dtype=kind) for kind in _RECORD_TYPES)
    n_pieces, n_records = plan_pieces(
        ordered, block.row, block.times, series.starts, series.key_low, partitions, max_bytes, pieces, records
    )
    partition, sizes, samples, of_series = (column[:n_records] for column in records)
    order = np.argsort(partition, kind="stable")
    ends = np.cumsum(sizes[order])
    bounds = np.append(0, ends)
    position = np.empty(n_records, dtype=np.int64)
    position[order] = bounds[:-1]
    packed = np.empty(ends[-1], dtype=np.uint8)
    pieces = tuple(column[:n_pieces] for column in pieces)
    bits = block.values.view(np.uint64)
    write_pieces(ordered, block.times, bits, series.starts, series.labels, pieces, position, packed)
    values = (
        compress(packed[start:end].tobytes()) for start, end in zip(bounds.tolist(), bounds[1:].tolist(), strict=False)
    )
    columns = (partition[order].tolist(), values, samples[order].tolist(), of_series[order].tolist())
    return tuple(PackedRecord(*fields) for fields in zip(*columns, strict=True))


def _excerpt(block: SampleBlock, sample: int) -> str:
    """A sample's time and series as text."""
    moment, series = int(block.times[sample]), int(block.row[sample])
    return f"{_time_text(moment)} {labels_text(_labels(block.series, series))}"[:MAX_EXCERPT]


def _labels(series: SeriesColumns, row: int) -> bytes:
    return series.labels[series.starts[row] : series.starts[row + 1]].tobytes()


def _time_text(moment: int) -> str:
    try:
        return (_EPOCH + timedelta(milliseconds=moment)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    except OverflowError:
        return f"{moment} ms"


def _counts(length: int) -> I64s:
    return np.zeros(length, dtype=np.int64)
