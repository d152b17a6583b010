"""What a shard had of a range of times at one moment, to be read series by series or block by block.

The buffers are looked at first and the manifest after them. A group that is committed in between is then seen twice,
which does no harm, since equal samples fall together; the other way round it could be missed.
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

# Is called with the number of samples of each piece, from several threads; what it raises ends the reading.
OnSamples = Callable[[int], None]
# So many rows of one query are asked for at a time, before it is the turn of others.
_ROWS_PER_ROUND = 16
# So many of them the thread that asks has asked for at a time, if it reads them itself.
_ROWS_AHEAD = 4
# Up to so many series, over all rows, are decoded by the thread that asks: handing them over would take longer.
_INLINE_SERIES = 64


def ignore_samples(_samples: int) -> None:
    """Goes on whatever was found."""


@dataclass(frozen=True, slots=True)
class Buffered:
    """The samples of a bucket that are in memory; if it `is_closed`, none are added."""

    bucket: int
    view: BufferView
    is_closed: bool


@dataclass(frozen=True, slots=True)
class _RowRead:
    """A row of the manifest, and the series that are wanted of its group."""

    row: GroupRow
    wanted: WantedSeries


@dataclass(frozen=True, slots=True)
class _Request:
    """What a query wants, and what ends it."""

    times: TimeRange
    on_samples: OnSamples
    with_values: bool
    cancelled: threading.Event


class PinnedRead:
    """One moment of a shard. Any thread may read, as often as it likes: whatever is stored, appended or released
    meanwhile does not show. It keeps the buffers' pages in memory for as long as it lives: it is meant for one query.
    """

    def __init__(
        self,
        shard: Shard,
        reader: str,
        times: TimeRange,
        threads: Callable[[], ThreadPoolExecutor | None],
        cache: SegmentCache,
    ) -> None:
        """`reader` tells this shard's life from others. `threads` read rows beside each other, if there are any."""
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
        """The samples of some series in the pinned times, or in a part of them. The later bucket wins where two have a
        sample at one time. Without values only staleness markers are what they are, other values are any others.

        `on_samples` is called with every piece. Pieces may contain the same sample. Raises what it raises, and
        `SegmentDamaged` or `SpillDamaged` rather than omit samples.
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

    def blocks(self, wanted: WantedSeries, most_samples: int, times: TimeRange | None = None) -> list[WantedSeries]:
        """The series in blocks of about so many samples at most in the pinned times, or in a part of them, by what the
        manifest and the buffers tell of each group; a series has at least one block to itself.
        """
        if len(wanted) == 1:
            return [wanted]
        groups = self._shard.parts.options.groups
        each = self._samples_per_series(groups, self.times if times is None else times)
        return cut_blocks(wanted, groups, each, most_samples)

    def estimated_samples(self, wanted: WantedSeries) -> int:
        """About how many samples some series have in the pinned times. Nothing is read for it: each series counts as
        one that has the average of its group, in each row of the manifest and each buffer.
        """
        groups = self._shard.parts.options.groups
        each = self._samples_per_series(groups, self.times)
        return round(float(each[(wanted.metric % np.uint64(groups)).astype(np.int64)].sum()))

    @property
    def content(self) -> PinnedContent:
        """What identifies the samples that can be read, for a later moment to be compared with."""
        rows = frozenset(
            StoredRow(row.bucket, row.group, row.attempt, row.least_time, row.greatest_time)
            for row in self._rows
            if row.least_time is not None and row.greatest_time is not None
        )
        buffers = tuple(BufferContent(one.bucket, one.view.version, one.is_closed) for one in self._buffered)
        return PinnedContent(self._reader, self.times, rows, buffers, self._settled)

    def unchanged_before(self, before: PinnedContent) -> int:
        """The time before which all samples from `times.first` on are what they were at an earlier moment with that
        content. It is `times.first` if none is known to be, and behind the times of both moments if all are.
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
        """What is stored of each row in whose group there is something wanted, with its bucket, in order."""
        groups = self._shard.parts.options.groups
        of_group = wanted.by_group(groups)
        work = [_RowRead(row, of_group[row.group]) for row in self._rows if row.group in of_group]
        found: list[tuple[int, SeriesRun]] = []
        is_small = sum(len(one.wanted) for one in work) <= _INLINE_SERIES
        threads = self._threads() if len(work) > 1 and not is_small else None
        # Not all at once: another query of the shard would wait behind them.
        for first in range(0, len(work), _ROWS_PER_ROUND):
            part = work[first : first + _ROWS_PER_ROUND]
            runs = (
                self._read_inline(part, request) if threads is None else self._read_in_threads(threads, part, request)
            )
            found += [(one.row.bucket, run) for one, of_row in zip(part, runs, strict=True) for run in of_row]
        return found

    def _read_inline(self, work: Sequence[_RowRead], request: _Request) -> list[list[SeriesRun]]:
        """Some rows are asked for before the first is waited for."""
        request.on_samples(0)
        found: list[list[SeriesRun]] = []
        coming = deque(self._segments(one) for one in work[:_ROWS_AHEAD])
        for place, one in enumerate(work):
            found.append(list(self._selected(one, coming.popleft(), request)))
            coming.extend(self._segments(later) for later in work[place + _ROWS_AHEAD :][:1])
        return found

    def _read_in_threads(
        self, threads: ThreadPoolExecutor, work: Sequence[_RowRead], request: _Request
    ) -> list[list[SeriesRun]]:
        def read(one: _RowRead) -> list[SeriesRun]:
            # What ended the reading of another row ends that of this one before it begins.
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
    # The open one before the closed ones: it may be closed in between, and is then seen twice, never missed.
    current = shard.buffer
    found = [Buffered(current.bucket, current.snapshot(), is_closed=False)]
    closed = [(one.bucket, one.view()) for one in shard.flusher.closed_buckets()]
    return found + [Buffered(bucket, view, is_closed=True) for bucket, view in closed if view is not None]
