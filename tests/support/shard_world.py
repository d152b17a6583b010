"""A simulated environment of a shard: a log, a store and a clock, and everything that was produced.

A shard may crash in it at any moment, even during a call to the store, and start again. At the end, what is found is
compared with what was produced, sample by sample and bucket by bucket.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from strandline.clock import Clock, ManualClock
from strandline.index.bitmaps import to_bitmap
from strandline.index.documents import decode_part_key
from strandline.index.part_columns import LIVE
from strandline.index.policy import BucketPolicy
from strandline.index.sample_limits import SampleLimits
from strandline.node.shard.index_storage import MemoryStorage
from strandline.node.shard.memory_log import MemoryDeadLetters, MemoryLog
from strandline.node.shard.options import FlushTiming, ReplayMode, ReplayOptions, ShardOptions
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.reader import ShardReader
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Phase, Status
from strandline.recovery.checkpoints import designated_group
from strandline.recovery.cutting import Cutting
from strandline.recovery.job_order import JobOrder
from strandline.recovery.offset_policy import Accepted, FirstStart
from strandline.recovery.present import Present
from strandline.recovery.replay.memory_runner import MemoryRunner, TaskSizes
from strandline.recovery.replay.record_batch import RecordBatch
from strandline.recovery.replay.replay_input import ReplaySettings
from strandline.recovery.replay_worker import ReplayWorker, WorkerOptions
from strandline.store.protocol import Store, StoreUnavailable
from strandline.store.rows import GroupRow, ManifestRows, ShardId
from strandline.store.sqlite import open_sqlite_store
from strandline.time_range import ALL_TIMES, TimeRange
from strandline.wire.decode import Limits
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.fake_machine import FakeMachine, FakeProcess
from support.shard_samples import Name, samples_in

MINUTE = 60_000
HOUR = 60 * MINUTE
START = 1_000 * HOUR + 10 * MINUTE
GRACE = MINUTE
POLICY = BucketPolicy(flush_interval=HOUR, retention=5 * HOUR, margin=6 * HOUR, stale_after=HOUR)

Samples = Mapping[Name, Mapping[int, float]]


class Crash(BaseException):
    """The process has crashed."""


@dataclass(frozen=True)
class Produced:
    """A record in the log: its offset, its time, and its samples in order."""

    offset: int
    time: int
    samples: Sequence[tuple[Name, int, float]]


@dataclass(frozen=True)
class StoreCall:
    """A call to the store, with its arguments."""

    name: str
    arguments: tuple[Any, ...]

    @property
    def writes_group(self) -> int | None:
        """The group whose segments it writes."""
        return self.arguments[0].group if self.name == "write_segments" else None


Hook = Callable[[StoreCall], None]


def no_fault(_call: StoreCall) -> None:
    """The default hook: let the call pass."""


class FaultyStore:
    """A store whose calls pass through hooks, which may raise before or after a call."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.before: Hook = no_fault
        self.after: Hook = no_fault

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        def hooked(*arguments: Any, **options: Any) -> Any:
            self.before(StoreCall(name, arguments))
            result = call(*arguments, **options)
            self.after(StoreCall(name, arguments))
            return result

        return hooked


class InMemoryReplays:
    """A `ReplayService` whose worker runs when the test calls it."""

    def __init__(self, world: "World") -> None:
        self.wanted = 0
        self._world = world

    def ensure_worker(self) -> None:
        self.wanted += 1

    def close(self) -> None:
        """Does nothing."""

    def worker(
        self, process: FakeProcess | None = None, *, split: TaskSizes | None = None, wave_records: int = 1_000
    ) -> ReplayWorker:
        """A worker over the log in memory, in its own process."""
        world, options = self._world, self._world.options
        process = process or world.machine.process()
        settings = ReplaySettings(
            options.groups,
            options.policy.flush_interval,
            options.record_limits,
            options.sample_limits,
            options.policy.time_to_live,
        )

        def records(_shard: int, start: int, end: int) -> Iterator[RecordBatch]:
            found = world.log.read(start, end)
            yield RecordBatch(found.offsets, found.times, found.times_checked, found.values)

        store = cast("Store", world.store)
        return ReplayWorker(
            store,
            [options.shard],
            MemoryRunner(store, records, settings, world.clock, sizes=split or TaskSizes(3, 2)),
            world.clock,
            process.this_worker(),
            job_order=JobOrder(Cutting(options.policy.flush_interval, options.grace), None),
            options=WorkerOptions(wave_records=wave_records),
            is_gone=process.is_gone,
        )


class World:
    """One partition and one store, with at most one running shard."""

    def __init__(
        self,
        folder: Path,
        *,
        groups: int = 4,
        clock: ManualClock | None = None,
        store_clock: Clock | None = None,
        **changes: Any,
    ) -> None:
        """With its own clock, the store is one with servers, whose time the shard requests."""
        self.clock = clock or ManualClock(START)
        self.store_clock = store_clock
        self.log = MemoryLog()
        self.dead_letters = MemoryDeadLetters()
        self.sqlite = open_sqlite_store(folder / "store.sqlite", store_clock or self.clock)
        self.store = FaultyStore(self.sqlite)
        self.options = replace(
            ShardOptions(
                shard=ShardId("metrics", 0),
                policy=POLICY,
                groups=groups,
                partitions=1,
                grace=GRACE,
                history=24 * HOUR,
                first_start=FirstStart(),
                record_limits=Limits(),
                sample_limits=SampleLimits(None, None),
                series_limit=1000,
                flush=FlushTiming(spread=0.0),
                folder=folder,
                buffer_bytes=1 << 30,
                spill_bytes=1 << 30,
                poll_records=3,
                poll_timeout_s=0.0,
                seal_rows=16,
                active_lag=0,
            ),
            **changes,
        )
        self.replays = InMemoryReplays(self)
        self.machine = FakeMachine()
        self.process = self.machine.process()
        self.produced: list[Produced] = []
        self.shard: Shard | None = None
        self.status = Status()

    def close(self) -> None:
        self.sqlite.close()

    # External events.

    def produce(self, *samples: tuple[str, str, int, float], late: int = 0, times_checked: bool = False) -> None:
        """Produce one record, now or with a record time this many milliseconds ago. A sample is metric, name, time,
        value.
        """
        rows = [((metric, name), time, value) for metric, name, time, value in samples]
        body = encode_request(
            Series([("__name__", metric), ("name", name)], [(time, value)]) for (metric, name), time, value in rows
        )
        time = self.clock.now_ms() - late
        offset = self.log.append(compress(body), time, times_checked=times_checked)
        self.produced.append(Produced(offset, time, rows))

    def abort_transaction(self) -> None:
        """Produce an aborted transaction and its marker: offsets that are invisible."""
        transaction = self.log.begin()
        transaction.append(b"never seen", self.clock.now_ms())
        transaction.abort()

    def pass_time(self, milliseconds: int) -> None:
        self.clock.sleep(milliseconds / 1000)

    # The operations of the shard.

    def parts(self, home: MemoryStorage | None = None) -> ShardParts:
        """The parts of a shard in this world."""
        return ShardParts(
            self.options,
            self.log,
            self.store,
            home or MemoryStorage(),
            self.dead_letters,
            self.clock,
            Present(self.clock, lambda: self.store_clock.now_ms() if self.store_clock is not None else None),
            self.replays,
            self.process,
        )

    def start(self, *, accepted: Accepted | None = None, reads_tail: bool = True, take: bool = False) -> Shard:
        """Start the shard in its own process."""
        self.status = Status()
        self.process = self.machine.process()
        self.shard = Shard.start(
            self.parts(), self.status, take=take, accepted=accepted or Accepted(), reads_tail=reads_tail
        )
        return self.shard

    def replay_by(self, mode: ReplayMode) -> None:
        """Use this replay mode from the next start on, for any number of records."""
        self.options = replace(self.options, replay=ReplayOptions(mode, threshold=0))

    def work(self, waves: int = 1_000) -> None:
        """Let a worker run the open jobs, in at most this many waves."""
        process = self.machine.process()
        try:
            worker = self.replays.worker(process)
            while waves and worker.step():
                waves -= 1
        finally:
            process.kill()

    def crash(self) -> None:
        """Crash without closing anything."""
        self.process.kill()
        self.shard = None
        self.log.close()
        self.store.before = self.store.after = no_fault

    @property
    def running(self) -> Shard:
        assert self.shard is not None
        return self.shard

    def read_all(self) -> None:
        """Let the shard read to the end of the log, and store where reading waits for that, as far as possible."""
        while self.running.step() or (self.running.waits_for_store() and self.running.flusher.step() == 0):
            pass

    def store_due(self, most: int = 10_000) -> None:
        """Let the shard store what is due, and maintain its buffer."""
        for _ in range(most):
            if self.running.flusher.step() > 0:
                break
        while self.running.buffer.maintain():
            pass
        self.running.step()

    def settle(self) -> None:
        """Read and store everything that is due."""
        self.read_all()
        self.store_due()
        self.read_all()

    def pass_hours(self, hours: int) -> None:
        """Let hours pass, with a shard that keeps up."""
        for _ in range(hours):
            self.pass_time(HOUR)
            self.settle()

    # The actual content.

    def manifest(self) -> ManifestRows:
        found = self.sqlite.manifest(self.options.shard)
        assert found is not None
        return found

    def rows(self, bucket: int) -> dict[int, GroupRow]:
        return {row.group: row for row in self.manifest().groups if row.bucket == bucket}

    def keys(self) -> dict[Name, tuple[int, int, int | None]]:
        """Start, greatest sample time and end (None while live) of each key in the index."""
        index = self.running.index
        rows = index.columns.rows
        rows = rows.take(rows.present())
        batch = self.running.index._documents.fetch(to_bitmap(rows.part_id))
        names = {}
        for place, part_id in enumerate(batch.part_ids.tolist()):
            labels = decode_part_key(batch.part_key(place))
            names[part_id] = (labels["__name__"], labels["name"])
        assert len(set(names.values())) == len(rows), "a key has two part ids, or an id has no key"
        times = zip(rows.part_id.tolist(), rows.start.tolist(), rows.last.tolist(), rows.end.tolist(), strict=True)
        return {names[key]: (start, last, None if end == LIVE else end) for key, start, last, end in times}

    def found(self, times: TimeRange = ALL_TIMES) -> dict[Name, dict[int, float]]:
        """All samples of all keys in the index, as a query finds them."""
        return samples_in(self.running, ShardReader(self.running), times)

    # The expected content.

    def expected(self) -> dict[Name, dict[int, float]]:
        """Every sample of every record in the log; of two at one time, the later one."""
        expected: dict[Name, dict[int, float]] = defaultdict(dict)
        for record in self.produced:
            for name, time, value in record.samples:
                expected[name][time] = value
        return dict(expected)

    def check_stored_once(self) -> None:
        """Check that each stored bucket counts exactly the samples of the records between its cuts."""
        manifest = self.manifest()
        for cut in manifest.cuts:
            rows = [row for row in manifest.groups if row.bucket == cut.bucket and not row.superseded]
            if cut.reset or len(rows) < self.options.groups:
                continue
            held = {
                (name, time)
                for record in self.produced
                if max(cut.start, cut.lost_to or 0) <= record.offset < cut.end
                for name, time, _ in record.samples
            }
            assert sum(row.samples for row in rows) == len(held), f"bucket {cut.bucket}"

    def check_all_found(self) -> None:
        """Check that every sample is found once, with its value."""
        assert self.found() == self.expected()
        self.check_stored_once()

    def is_active(self) -> bool:
        return self.status.phase is Phase.ACTIVE


METRICS = [f"metric_{number}" for number in range(12)]  # Enough to have a metric in each group.


def produce_everywhere(world: World, name: str = "a", value: float = 1.0) -> None:
    """Produce a sample of each metric, now."""
    now = world.clock.now_ms()
    world.produce(*((metric, name, now, value) for metric in METRICS))


def group_fails(failing: int) -> Hook:
    """A hook that makes writing one group's segments fail."""

    def hook(call: StoreCall) -> None:
        if call.writes_group == failing:
            raise StoreUnavailable("the store is not there")

    return hook


def other_group(world: World) -> int:
    """A group that does not reference index buckets."""
    return (designated_group(world.options.shard, world.options.groups) + 1) % world.options.groups
