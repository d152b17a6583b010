"""The samples of a shard in a time range at one moment, to be read series by series or block by block.

The buffers are pinned before the manifest. A group that is committed in between is then read twice, which is harmless,
because equal samples are merged. In the other order, it could be missed.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from strandline.arrays import F64s
from strandline.node.shard.pinned_content import BufferContent, PinnedContent, StoredRow
from strandline.node.shard.read_blocks import cut_blocks, samples_per_series
from strandline.node.shard.segment_cache import SegmentCache
from strandline.node.shard.shard import Shard
from strandline.store.buffer.view import BufferView
from strandline.store.merging import merge_runs
from strandline.store.rows import GroupRow, Segment, SegmentsOf
from strandline.store.segment_codec import select
from strandline.store.selecting import WantedSeries
from strandline.store.series_run import SeriesRun
from strandline.time_range import TimeRange

# Called with the number of samples of each part, by several threads. An exception from it ends the read.
OnSamples = Callable[[int], None]
# How many rows of one query are read before rows of other queries get their turn.
_ROWS_PER_ROUND = 16
# How many rows are prefetched when the calling thread reads them itself.
_ROWS_AHEAD = 4
# Up to this many series, over all rows, are decoded by the calling thread: handing them to others would take longer.
_INLINE_SERIES = 64


def ignore_samples(_samples: int) -> None:
    """Does nothing."""


@dataclass(frozen=True, slots=True)
class Buffered:
    """The samples of a bucket in memory. If it `is_closed`, no samples are added."""

    bucket: int
    view: BufferView
    is_closed: bool


@dataclass(frozen=True, slots=True)
class _RowRead:
    """A manifest row, and the wanted series of its group."""

    row: GroupRow
    wanted: WantedSeries


@dataclass(frozen=True, slots=True)
class _Request:
    """The options of a read, and whether it was cancelled."""

    times: TimeRange
    on_samples: OnSamples
    with_values: bool
    cancelled: threading.Event


class PinnedRead:
    """A snapshot of a shard. Any thread may read it, any number of times: later appends, commits and releases are not
    visible. It keeps the buffers' pages in memory while it exists, so use it for one query only.
    """

    def __init__(
        self,
        shard: Shard,
        reader: str,
        times: TimeRange,
        threads: Callable[[], ThreadPoolExecutor | None],
        cache: SegmentCache,
    ) -> None:
        """`reader` identifies this start of the shard. `threads` read rows concurrently, if there are any."""
        self.times = times
        self._shard, self._reader, self._threads, self._cache = shard, reader, threads, cache
        self._buffered = _buffers(shard)
        self._settled = shard.parts.present.settled_ms()
        self._rows = shard.view.overlapping(times.first, times.last, self._settled)

    def read(
        self,
        wanted: WantedSeries,
        times: TimeRange | None = None,
        on_samples: OnSamples = ignore_samples,
        *,
        with_values: bool = True,
    ) -> SeriesRun:
        """The samples of some series in the pinned times, or in a part of them. If two buckets have a sample at the
        same time, the later bucket's is used. Without `with_values`, only staleness markers have their values; all
        other values are arbitrary.

        `on_samples` is called for every part; parts may contain the same sample. Raises its exceptions, and
        `SegmentDamaged` or `SpillDamaged` instead of leaving out samples.
        """
        times = self.times if times is None else times
        if times.first < self.times.first or times.last > self.times.last:
            raise ValueError(f"{times} is not within {self.times}, which was pinned")
        runs = self._stored(wanted, _Request(times, on_samples, with_values, threading.Event()))
        for one in self._buffered:
            run = one.view.read(wanted, times)
            on_samples(run.samples)
            runs.append((one.bucket, run))
        return merge_runs([run for _, run in sorted(runs, key=lambda pair: pair[0])])

    def blocks(self, wanted: WantedSeries, max_samples: int, times: TimeRange | None = None) -> list[WantedSeries]:
        """The series in blocks of at most about `max_samples` samples, or of one series, in the pinned times or in a
        part of them. Estimated from the figures of each group in the manifest and the buffers.
        """
        if len(wanted) == 1:
            return [wanted]
        groups = self._shard.parts.options.groups
        each = self._samples_per_series(groups, self.times if times is None else times)
        return cut_blocks(wanted, groups, each, max_samples)

    def estimated_samples(self, wanted: WantedSeries) -> int:
        """An estimate of the number of samples of some series in the pinned times, without reading them: each series
        counts with the average of its group, in each manifest row and each buffer.
        """
        groups = self._shard.parts.options.groups
        each = self._samples_per_series(groups, self.times)
        return round(float(each[(wanted.metric % np.uint64(groups)).astype(np.int64)].sum()))

    @property
    def content(self) -> PinnedContent:
        """What identifies the readable samples, for a later comparison."""
        rows = frozenset(
            StoredRow(row.bucket, row.group, row.attempt, row.least_time, row.greatest_time)
            for row in self._rows
            if row.least_time is not None and row.greatest_time is not None
        )
        buffers = tuple(BufferContent(one.bucket, one.view.version, one.is_closed) for one in self._buffered)
        return PinnedContent(self._reader, self.times, rows, buffers, self._settled)

    def unchanged_before(self, before: PinnedContent) -> int:
        """The time before which all samples from `times.first` on are the same as in `before`: `times.first` if none
        are known to be the same, and a time after both time ranges if all are.
        """
        versions = {one.bucket: one.version for one in before.buffers}
        taken = (one.view.least_time_since(versions.get(one.bucket)) for one in self._buffered)
        time_to_live = self._shard.parts.options.policy.time_to_live
        return max(self.times.first, min([self.content.first_change(before, time_to_live), *taken]))

    def _samples_per_series(self, groups: int, times: TimeRange) -> F64s:
        each = samples_per_series(self._rows, groups, times)
        for one in self._buffered:
            each += one.view.samples_per_series(times)
        return each

    def _stored(self, wanted: WantedSeries, request: _Request) -> list[tuple[int, SeriesRun]]:
        """The stored samples of each row with wanted series, with their bucket, in order."""
        groups = self._shard.parts.options.groups
        of_group = wanted.by_group(groups)
        work = [_RowRead(row, of_group[row.group]) for row in self._rows if row.group in of_group]
        found: list[tuple[int, SeriesRun]] = []
        is_small = sum(len(one.wanted) for one in work) <= _INLINE_SERIES
        threads = self._threads() if len(work) > 1 and not is_small else None
        # Not all at once: other queries of the shard would wait for all of them.
        for first in range(0, len(work), _ROWS_PER_ROUND):
            part = work[first : first + _ROWS_PER_ROUND]
            runs = (
                self._read_inline(part, request) if threads is None else self._read_in_threads(threads, part, request)
            )
            found += [(one.row.bucket, run) for one, of_row in zip(part, runs, strict=True) for run in of_row]
        return found

    def _read_inline(self, work: Sequence[_RowRead], request: _Request) -> list[list[SeriesRun]]:
        """Read rows in the calling thread, with requests for the next rows sent ahead."""
        request.on_samples(0)
        found: list[list[SeriesRun]] = []
        pending = deque(self._segments(one) for one in work[:_ROWS_AHEAD])
        for index, one in enumerate(work):
            found.append(list(self._selected(one, pending.popleft(), request)))
            pending.extend(self._segments(later) for later in work[index + _ROWS_AHEAD :][:1])
        return found

    def _read_in_threads(
        self, threads: ThreadPoolExecutor, work: Sequence[_RowRead], request: _Request
    ) -> list[list[SeriesRun]]:
        def read(one: _RowRead) -> list[SeriesRun]:
            # May raise, if the read of another row was ended.
            request.on_samples(0)
            return list(self._selected(one, self._segments(one), request))

        futures = [threads.submit(read, one) for one in work]
        try:
            return [future.result() for future in futures]
        except BaseException:
            request.cancelled.set()
            for future in futures:
                future.cancel()
            raise

    def _segments(self, read: _RowRead) -> Iterator[Segment]:
        first, last = read.wanted.key(0).to_bytes(), read.wanted.key(-1).to_bytes()
        return self._cache.segments(self._shard.parts.store, self._where(read.row), read.row, first, last)

    def _selected(self, read: _RowRead, segments: Iterator[Segment], request: _Request) -> Iterator[SeriesRun]:
        for segment in segments:
            named = f"{segment.first.hex()}/{segment.seq} of {self._where(read.row)}"
            run = select(segment.data, read.wanted, request.times, named=named, with_values=request.with_values)
            request.on_samples(run.samples)
            if request.cancelled.is_set():
                return
            yield run

    def _where(self, row: GroupRow) -> SegmentsOf:
        return SegmentsOf(self._shard.parts.options.shard, row.bucket, row.group, row.attempt)


def _buffers(shard: Shard) -> list[Buffered]:
    # The open bucket before the closed ones: if it is closed in between, it is read twice, but never missed.
    current = shard.buffer
    found = [Buffered(current.bucket, current.snapshot(), is_closed=False)]
    closed = [(one.bucket, one.view()) for one in shard.flusher.closed_buckets()]
    return found + [Buffered(bucket, view, is_closed=True) for bucket, view in closed if view is not None]
