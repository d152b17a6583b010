"""Reads a shard's samples for queries: from the buffers of open and closed buckets, and from stored segments."""

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from strandline.node.shard.pinned_read import OnSamples, PinnedRead, ignore_samples
from strandline.node.shard.shard import Shard
from strandline.store.merging import merge_runs
from strandline.store.selecting import WantedSeries
from strandline.store.series_run import SeriesRun
from strandline.time_range import TimeRange

# How many manifest rows are read concurrently: reading a row mostly waits for the store.
_READ_THREADS = 4


class ShardReader:
    """Reads one shard. Thread-safe. `close` it after more than one read."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._identity = uuid4().hex
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._is_closed = False

    @property
    def number(self) -> int:
        """The shard's number."""
        return self._shard.parts.options.shard.shard

    def close(self) -> None:
        """End the threads that read rows concurrently; later reads work without them. Closing twice does nothing."""
        with self._lock:
            threads, self._threads, self._is_closed = self._threads, None, True
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    def pinned(self, times: TimeRange) -> PinnedRead:
        """A snapshot of the samples in a time range, to be read in one or more blocks."""
        return PinnedRead(self._shard, self._identity, times, self._pool, self._shard.segment_cache)

    def read(
        self,
        wanted: WantedSeries,
        times: TimeRange,
        on_samples: OnSamples = ignore_samples,
        *,
        with_values: bool = True,
    ) -> SeriesRun:
        """The samples of some series in a time range, as returned by `PinnedRead.read`."""
        return self.pinned(times).read(wanted, on_samples=on_samples, with_values=with_values)

    def _pool(self) -> ThreadPoolExecutor | None:
        with self._lock:
            if self._threads is None and not self._is_closed:
                self._threads = ThreadPoolExecutor(_READ_THREADS, thread_name_prefix="segments")
            return self._threads


def read_shards(readers: Iterable[ShardReader], wanted: WantedSeries, times: TimeRange) -> SeriesRun:
    """The samples of some series in several shards of a dataset. If two shards have a sample of one series at the same
    time, the higher shard's is used: a series is in two shards if partitions were added between a write and its retry.
    """
    ordered = sorted(readers, key=lambda reader: reader.number)
    return merge_runs([reader.read(wanted, times) for reader in ordered])
