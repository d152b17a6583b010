"""Helpers of the contract suite of stores: an open store, rows for it, and races."""

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from strandline.clock import Clock, wait_until
from strandline.store.jobs import Job, JobResultOf, ResultRow
from strandline.store.protocol import Store
from strandline.store.rows import CutRow, GroupRow, Lifetime, ManifestWrite, Ownership, ShardId, ShardState
from strandline.store.series_run import SeriesKey
from strandline.store.sqlite import open_sqlite_store
from support.memory_store import MemoryServer, MemoryStore

T = TypeVar("T")

IMPLEMENTATIONS = ("sqlite", "memory", "cassandra")

# The writers' time, regardless of the store's clock: only the lifetime of rows follows from it.
PRESENT = 1_700_000_000_000
# Long enough to outlast any test, in milliseconds.
LASTING = 3_600_000
# Short enough to wait for, and long enough to be observed on a slow machine.
SHORT = 5_000
# A store may count lifetimes in whole seconds, and therefore expire a row up to a second early.
RESOLUTION = 1_000


@dataclass(frozen=True)
class OpenedStore:
    """A store for the suite, of any kind.

    `clock` is the one by which its rows expire: waiting on it must make time pass there, `poll_s` at a time.
    `open_another` opens a second store on the same data, like another process. The creator of this value closes both.
    """

    store: Store
    clock: Clock
    open_another: Callable[[], Store]
    poll_s: float = 0.05

    @property
    def lives(self) -> "Lives":
        return Lives(self.store, self.clock, self.poll_s)


def open_sqlite(folder: Path, clock: Clock) -> Iterator[OpenedStore]:
    """A store in its own file; `clock` decides what has expired."""
    with ExitStack() as opened:

        def open_another() -> Store:
            return opened.enter_context(closing(open_sqlite_store(folder / "store.sqlite", clock)))

        yield OpenedStore(open_another(), clock, open_another, poll_s=5.0)


def open_memory(clock: Clock) -> Iterator[OpenedStore]:
    """A store in memory, whose server has this clock."""
    server = MemoryServer(clock)
    yield OpenedStore(MemoryStore(server), clock, lambda: MemoryStore(server), poll_s=5.0)


@dataclass(frozen=True)
class Lives:
    """How long rows live, by the store's clock: with a server's clock in real time, with a manual clock without."""

    store: Store
    clock: Clock
    poll_s: float

    def lasting(self) -> Lifetime:
        """The lifetime of rows that outlast the test."""
        return Lifetime.from_present(self.clock.now_ms(), LASTING)

    def soon(self) -> Lifetime:
        """The lifetime of rows whose expiry the test waits for."""
        return Lifetime.from_present(self.clock.now_ms(), SHORT)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Let time pass until a condition holds. Writes meanwhile, because a store may expire rows during writes."""

        def holds() -> bool:
            self.store.write_result(JobResultOf(fresh_shard(), 0, "tick"), [ResultRow("tick", 0, b"")], self.soon())
            return condition()

        assert wait_until(holds, timeout=300, clock=self.clock, poll=self.poll_s), "the condition did not become true"


def fresh_shard() -> ShardId:
    """A shard that no test has used: real servers are shared."""
    return ShardId(f"dataset-{uuid.uuid4().hex}", 3)


def fresh_owner() -> str:
    return uuid.uuid4().hex


def taken(store: Store, shard: ShardId, *, now: int = 1_000) -> Ownership:
    """Take the shard, from any owner."""
    ownership = store.take(shard, fresh_owner(), store.state(shard), now=now, topic_id="topic-1")
    assert ownership is not None
    return ownership


def state_of(store: Store, shard: ShardId) -> ShardState:
    state = store.state(shard)
    assert state is not None
    return state


def manifest_write(
    cuts: Iterable[CutRow] = (),
    groups: Iterable[GroupRow] = (),
    next_part_id: int | None = None,
    topic_id: str | None = None,
    *,
    present: int = PRESENT,
) -> ManifestWrite:
    return ManifestWrite(tuple(cuts), tuple(groups), next_part_id, topic_id, present=present)


def cut(bucket: int, life: Lifetime, *, start: int = 100, end: int = 200, lost_to: int | None = None) -> CutRow:
    return CutRow(bucket, start, end, life.expires, lost_to)


def group_row(bucket: int, group: int, life: Lifetime, *, attempt: str = "attempt-1") -> GroupRow:
    return GroupRow(
        bucket=bucket,
        group=group,
        attempt=attempt,
        segments=3,
        series=1_000,
        samples=240_000,
        least_time=1_700_000_000_000,
        greatest_time=1_700_003_599_999,
        checksum=bytes(range(240, 256)),
        codec_version=1,
        data_expires=10**13,
        expires=life.expires,
        written_by="node-1",
        written_at=1_700_003_630_000,
    )


def job(shard: ShardId, bucket: int, life: Lifetime, *, plan: str = "plan-1") -> Job:
    return Job(
        shard, bucket, plan, start=1_000, end=2_000, groups=frozenset({0, 5, 15}), wants_keys=True, life=life.length
    )


def series_key(metric: int, high: int = 0, low: int = 0) -> bytes:
    return SeriesKey(metric, high, low).to_bytes()


def race(call: Callable[..., T], *columns: Iterable[Any]) -> list[T]:
    """Like `map`, but with all calls made at the same moment from separate threads."""
    calls = list(zip(*columns, strict=False))
    start = threading.Barrier(len(calls))

    def run(arguments: tuple[Any, ...]) -> T:
        start.wait(timeout=60)
        return call(*arguments)

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))
