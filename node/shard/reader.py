"""Samples of a shard for a query: from the buffers of open and closed buckets, and from the segments that are stored.

The buffers are looked at first and the manifest after them. A group that is committed in between is then seen twice,
which does no harm, since equal samples fall together; the other way round it could be missed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from strandline.node.shard.shard import Shard
from strandline.store.buffer.view import BufferView
from strandline.store.merging import merge_runs
from strandline.store.rows import GroupRow, SegmentsOf
from strandline.store.segment_codec import select
from strandline.store.selecting import WantedSeries
from strandline.store.series_run import SeriesRun
from strandline.time_range import TimeRange


@dataclass(frozen=True, slots=True)
class _Buffered:
    bucket: int
    view: BufferView


class ShardReader:
    """Reads one shard. Any thread may."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard

    @property
    def number(self) -> int:
        """The shard's number."""
        return self._shard.parts.options.shard.shard

    def read(self, wanted: WantedSeries, times: TimeRange) -> SeriesRun:
        """The samples of some series in a range of times. The later bucket wins where two have a sample at one time.

        Raises `SegmentDamaged` or `SpillDamaged` rather than leave something out.
        """
        buffered = self._buffers()
        rows = self._shard.view.overlapping(times.first, times.last, self._shard.parts.clock.now_ms())
        runs = [(row.bucket, self._stored(row, wanted, times)) for row in rows]
        runs += [(one.bucket, one.view.read(wanted, times)) for one in buffered]
        return merge_runs([run for _, run in sorted(runs, key=lambda pair: pair[0])])

    def _buffers(self) -> list[_Buffered]:
        # The open one before the closed ones: it may be closed in between, and is then seen twice, never missed.
        current = self._shard.buffer
        found = [_Buffered(current.bucket, current.snapshot())]
        closed = [(one.bucket, one.view()) for one in self._shard.flusher.closed_buckets()]
        return found + [_Buffered(bucket, view) for bucket, view in closed if view is not None]

    def _stored(self, row: GroupRow, wanted: WantedSeries, times: TimeRange) -> SeriesRun:
        of_group = _of_group(wanted, row.group, self._shard.parts.options.groups)
        return merge_runs(list(self._selected(row, of_group, times))) if len(of_group) else SeriesRun.empty()

    def _selected(self, row: GroupRow, wanted: WantedSeries, times: TimeRange) -> Iterator[SeriesRun]:
        where = SegmentsOf(self._shard.parts.options.shard, row.bucket, row.group, row.attempt)
        store = self._shard.parts.store
        for segment in store.segments(where, first=wanted.key(0).to_bytes(), last=wanted.key(-1).to_bytes()):
            named = f"{segment.first.hex()}/{segment.seq} of {where}"
            yield select(segment.data, wanted, times.first, times.last, named=named)


def read_shards(readers: Iterable[ShardReader], wanted: WantedSeries, times: TimeRange) -> SeriesRun:
    """The samples of some series over shards of a dataset. Where two have a sample of one series at one time, the
    higher shard wins: a series lies in two where partitions were added between a write and its retry.
    """
    ordered = sorted(readers, key=lambda reader: reader.number)
    return merge_runs([reader.read(wanted, times) for reader in ordered])


def _of_group(wanted: WantedSeries, group: int, groups: int) -> WantedSeries:
    chosen = np.flatnonzero(wanted.metric % np.uint64(groups) == group)
    return WantedSeries(wanted.metric[chosen], wanted.key_high[chosen], wanted.key_low[chosen])
