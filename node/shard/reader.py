"""Samples of a shard for a query: from the buffers of open and closed buckets, and from segments that are stored."""

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

# So many rows of the manifest are read at a time: most of the time of one is waiting for the store.
_READ_THREADS = 4


class ShardReader:
    """Reads one shard. Any thread may. `close` it if it has read more than once."""

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
        """End the threads that read rows beside each other; later reads go without. Closing twice does nothing."""
        with self._lock:
            threads, self._threads, self._is_closed = self._threads, None, True
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    def pinned(self, times: TimeRange) -> PinnedRead:
        """What there is now of a range of times, to be read in as many blocks as a query needs."""
        return PinnedRead(self._shard, self._identity, times, self._pool, self._shard.segment_cache)

    def read(
        self,
        wanted: WantedSeries,
        times: TimeRange,
        on_samples: OnSamples = ignore_samples,
        *,
        with_values: bool = True,
    ) -> SeriesRun:
        """The samples of some series in a range of times, as `PinnedRead.read` gives them."""
        return self.pinned(times).read(wanted, on_samples=on_samples, with_values=with_values)

    def _pool(self) -> ThreadPoolExecutor | None:
        with self._lock:
            if self._threads is None and not self._is_closed:
                self._threads = ThreadPoolExecutor(_READ_THREADS, thread_name_prefix="segments")
            return self._threads


def read_shards(readers: Iterable[ShardReader], wanted: WantedSeries, times: TimeRange) -> SeriesRun:
    """The samples of some series over shards of a dataset. Where two have a sample of one series at one time, the
    higher shard wins: a series lies in two where partitions were added between a write and its retry.
    """
    ordered = sorted(readers, key=lambda reader: reader.number)
    return merge_runs([reader.read(wanted, times) for reader in ordered])
