"""Loads all kernels before a shard starts, by running some hours of a shard with its own log, store and clock.

Kernels are compiled at their first call, unless numba's cache has them. In a new installation, this takes some ten
seconds for the first record, and as long for the first bucket. If the loop of an active shard waited for it, the
supervisor would take it for a hang. A start may take longer.
"""

import shutil
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import structlog

from strandline.clock import ManualClock
from strandline.digest import digest
from strandline.index.key_table import KeyTable
from strandline.index.policy import BucketPolicy
from strandline.index.sample_limits import SampleLimits
from strandline.node.shard.index_storage import MemoryStorage
from strandline.node.shard.memory_log import MemoryDeadLetters, MemoryLog
from strandline.node.shard.options import FlushTiming, ShardOptions
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.reader import ShardReader
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Status
from strandline.promql import kernel_loading as promql_kernels
from strandline.recovery.offset_policy import FirstStart
from strandline.recovery.present import Present
from strandline.store.rows import ShardId
from strandline.store.selecting import WantedSeries
from strandline.store.sqlite import open_sqlite_store
from strandline.time_range import ALL_TIMES
from strandline.wire.decode import Limits
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress

_LOG = structlog.get_logger(__name__)
# For the whole process, which may run several shards one after the other.
_COMPILED = threading.Event()
_HOUR = 3_600_000
# Within these hours keys end and are purged.
_POLICY = BucketPolicy(flush_interval=_HOUR, retention=2 * _HOUR, margin=3 * _HOUR, stale_after=_HOUR)
_HOURS = 5


class WarmUp:
    """A warm-up in a background thread, while a start waits for Kafka and the store."""

    def __init__(self, folder: Path) -> None:
        """Start the thread. The folder is created, and removed at the end."""
        self._cancelled = threading.Event()
        self._thread = threading.Thread(target=_warm_up_or_log, args=(folder, self._cancelled), name="warm-up")
        self._thread.start()

    def wait(self) -> None:
        """Wait until it has ended."""
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A failed start does not need it.
        self._cancelled.set()
        self.wait()


def _warm_up_or_log(folder: Path, is_cancelled: threading.Event) -> None:
    if _COMPILED.is_set():
        return
    try:
        warm_up(folder, is_cancelled.is_set)
    except Exception:  # noqa: BLE001 - it is logged
        # The shard will fail in the same way, and then report the error with its remedy.
        _LOG.exception("the warm-up failed, the shard starts without it")


def warm_up(folder: Path, is_cancelled: Callable[[], bool] = lambda: False) -> None:
    """Load all kernels that a shard calls. The folder is created, and removed at the end."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        clock, log = ManualClock(1_000 * _HOUR), MemoryLog()
        with closing(open_sqlite_store(folder / "store.sqlite", clock)) as store:
            present = Present(clock, store.server_time)
            parts = ShardParts(_options(folder), log, store, MemoryStorage(), MemoryDeadLetters(), clock, present)
            # The second start loads what the first one has stored.
            for _ in range(2):
                _run_hours(Shard.start(parts, Status()), log, clock, is_cancelled)
        _read_local_copy()
        promql_kernels.load_kernels()
        if not is_cancelled():
            _COMPILED.set()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_hours(shard: Shard, log: MemoryLog, clock: ManualClock, is_cancelled: Callable[[], bool]) -> None:
    for _ in range(_HOURS):
        if is_cancelled():
            break
        now = clock.now_ms()
        for name in ("of all hours", f"of hour {now}"):
            series = Series([("__name__", "warm_up"), ("name", name)], [(now, 1.0), (now + 1, 2.0)])
            log.append(compress(encode_request([series])), now)
            _drain(shard)
        _read(shard)
        clock.sleep(_HOUR / 1000)
        _drain(shard)
    shard.close()


def _drain(shard: Shard) -> None:
    """Read to the end of the log, and store what is due."""
    while shard.step() or shard.flusher.step() == 0 or shard.buffer.maintain():
        pass


def _read(shard: Shard) -> None:
    rows = shard.index.columns.rows
    wanted = WantedSeries(rows.metric, rows.key_high, rows.key_low)
    with closing(ShardReader(shard)) as reader:
        reader.read(wanted, ALL_TIMES)


def _read_local_copy() -> None:
    """Call the kernels that load the local copy of an index, which `MemoryStorage` does not have."""
    words = np.ones(1, dtype=np.uint64)
    KeyTable(1).insert(words, words, np.zeros(1, dtype=np.uint32))
    digest(np.zeros(1, dtype=np.uint8))


def _options(folder: Path) -> ShardOptions:
    return ShardOptions(
        shard=ShardId("warm-up", 0),
        policy=_POLICY,
        groups=2,
        partitions=1,
        grace=0,
        history=_HOUR,
        first_start=FirstStart(),
        record_limits=Limits(),
        sample_limits=SampleLimits(None, None),
        series_limit=1_000,
        flush=FlushTiming(spread=0.0),
        folder=folder,
        buffer_bytes=1 << 20,
        spill_bytes=1 << 20,
        poll_timeout_s=0.0,
        # So small that rows are sealed in the buffer.
        seal_rows=2,
        active_lag=0,
    )
