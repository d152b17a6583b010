"""Samples of a shard for a query: from the buffers of open and closed buckets, and from the segments that are stored.

The buffers are looked at first and the manifest after them. A group that is committed in between is then seen twice,
which does no harm, since equal samples fall together; the other way round it could be missed.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from strandline.node.shard.shard import Shard
from strandline.store.buffer.view import BufferView
from strandline.store.merging import merge_runs
from strandline.store.rows import GroupRow, SegmentsOf
from strandline.store.segment_codec import select
from strandline.store.selecting import WantedSeries
from strandline.store.series_run import SeriesRun
from strandline.time_range import TimeRange

# Hears how many samples were found, piece by piece, from several threads; what it raises ends the reading.
Heard = Callable[[int], None]
# So many rows of the manifest are read at a time: most of the time of one is waiting for the store.
_ROWS_AT_ONCE = 4


def _nobody(_samples: int) -> None:
    """Goes on whatever was found."""


# So many rows of one query wait for a thread, before it is the turn of others.
_ROWS_IN_TURN = 16


@dataclass(frozen=True, slots=True)
class _Buffered:
    bucket: int
    view: BufferView


@dataclass(frozen=True, slots=True)
class _RowRead:
    """A row of the manifest, and the series that are wanted of its group."""

    row: GroupRow
    wanted: WantedSeries


class ShardReader:
    """Reads one shard. Any thread may. `close` it if it has read more than once."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._is_closed = False

    @property
    def number(self) -> int:
        """The shard's number."""
        return self._shard.parts.options.shard.shard

    def close(self) -> None:
        """End the threads that read rows beside each other; later reads go without. Closing twice does nothing."""
        with self._lock:
            threads, self._threads, self._is_closed = self._threads, None, True
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    def read(self, wanted: WantedSeries, times: TimeRange, heard: Heard = _nobody) -> SeriesRun:
        """The samples of some series in a range of times. The later bucket wins where two have a sample at one time.

        `heard` is told of every piece, in which a sample may be that another piece has, too. Raises what it raises, and
        `SegmentDamaged` or `SpillDamaged` rather than leave something out.
        """
        buffered = self._buffers()
        rows = self._shard.view.overlapping(times.first, times.last, self._shard.parts.present.settled_ms())
        runs = [(row.bucket, run) for row, run in self._stored(rows, wanted, times, heard)]
        for one in buffered:
            run = one.view.read(wanted, times)
            heard(run.samples)
            runs.append((one.bucket, run))
        return merge_runs([run for _, run in sorted(runs, key=lambda pair: pair[0])])

    def _buffers(self) -> list[_Buffered]:
        # The open one before the closed ones: it may be closed in between, and is then seen twice, never missed.
        current = self._shard.buffer
        found = [_Buffered(current.bucket, current.snapshot())]
        closed = [(one.bucket, one.view()) for one in self._shard.flusher.closed_buckets()]
        return found + [_Buffered(bucket, view) for bucket, view in closed if view is not None]

    def _stored(
        self, rows: Sequence[GroupRow], wanted: WantedSeries, times: TimeRange, heard: Heard
    ) -> list[tuple[GroupRow, SeriesRun]]:
        """What is stored of each row in whose group there is something wanted, in the order of the rows."""
        groups = self._shard.parts.options.groups
        of_group = {group: wanted.of_group(group, groups) for group in {row.group for row in rows}}
        work = [_RowRead(row, of_group[row.group]) for row in rows if len(of_group[row.group])]
        given_up = threading.Event()

        def read(one: _RowRead) -> SeriesRun:
            return merge_runs(list(self._selected(one, times, heard, given_up)))

        threads = self._pool() if len(work) > 1 else None
        if threads is None:
            return [(one.row, read(one)) for one in work]
        found: list[tuple[GroupRow, SeriesRun]] = []
        # Not all at once: another query of the shard would wait behind them.
        for first in range(0, len(work), _ROWS_IN_TURN):
            part = work[first : first + _ROWS_IN_TURN]
            futures = [threads.submit(read, one) for one in part]
            try:
                found += [(one.row, future.result()) for one, future in zip(part, futures, strict=True)]
            except BaseException:
                given_up.set()
                for future in futures:
                    future.cancel()
                raise
        return found

    def _selected(
        self, read: _RowRead, times: TimeRange, heard: Heard, given_up: threading.Event
    ) -> Iterator[SeriesRun]:
        row, wanted = read.row, read.wanted
        where = SegmentsOf(self._shard.parts.options.shard, row.bucket, row.group, row.attempt)
        store = self._shard.parts.store
        # What ended the reading of another row ends that of this one before it begins.
        heard(0)
        for segment in store.segments(where, first=wanted.key(0).to_bytes(), last=wanted.key(-1).to_bytes()):
            named = f"{segment.first.hex()}/{segment.seq} of {where}"
            run = select(segment.data, wanted, times, named=named)
            heard(run.samples)
            if given_up.is_set():
                return
            yield run

    def _pool(self) -> ThreadPoolExecutor | None:
        with self._lock:
            if self._threads is None and not self._is_closed:
                self._threads = ThreadPoolExecutor(_ROWS_AT_ONCE, thread_name_prefix="segments")
            return self._threads


def read_shards(readers: Iterable[ShardReader], wanted: WantedSeries, times: TimeRange) -> SeriesRun:
    """The samples of some series over shards of a dataset. Where two have a sample of one series at one time, the
    higher shard wins: a series lies in two where partitions were added between a write and its retry.
    """
    ordered = sorted(readers, key=lambda reader: reader.number)
    return merge_runs([reader.read(wanted, times) for reader in ordered])
