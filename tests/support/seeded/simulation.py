"""The environment of a simulation: machines, processes, the log, the store, and time."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast

from strandline.errors import Retryable
from strandline.node.shard.log import OffsetGone
from strandline.node.shard.memory_log import MemoryDeadLetters, MemoryLog
from strandline.node.shard.options import ReplayMode, ReplayOptions
from strandline.node.shard.ownership import OWNER_TIMEOUT_S, StillOwned
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Phase
from strandline.recovery.checkpoints import designated_group
from strandline.recovery.cutting import Cutting
from strandline.recovery.job_board import PlanStopped
from strandline.recovery.job_order import JobOrder
from strandline.recovery.offset_policy import Accepted, DataLost, HistoryExpired
from strandline.recovery.present import Present
from strandline.recovery.replay.memory_runner import MemoryRunner, TaskSizes
from strandline.recovery.replay.record_batch import RecordBatch
from strandline.recovery.replay_worker import ReplayWorker, WorkerOptions
from strandline.store.protocol import Fenced, Store
from strandline.store.rows import ManifestWrite
from support.memory_store import MemoryServer, MemoryStore
from support.replays import key_of, labels
from support.seeded.clients import Client
from support.seeded.clocks import MachineClock, TrueTime
from support.seeded.dataset import GRACE, HOUR, KAFKA_RETENTION, LIMITS, MINUTE, POLICY, SHARD, START, options_of
from support.seeded.home import CopyHome, LocalCopy
from support.seeded.hooked_store import Fault, HookedStore
from support.seeded.ledger import Ledger
from support.seeded.model import Model
from support.seeded.processes import NoReplayService, Process, ShardProcess
from support.seeded.violations import Crash, Violation

MACHINES = ("node-a", "node-b", "worker", "gateway", "broker", "store")
# Long enough for any owner to count as gone, and for any lease to expire.
STALL_MS = 150_000
# Nothing may stay unstored for longer than Kafka keeps it: within this time, operators fix all problems. Where
# something may be lost they are late, but not so late that the index expires.
_LONGEST_UNSTORED, _LONGEST_WITH_LOSS = 3 * HOUR, 5 * HOUR
# Kafka's brokers allow no longer transactions.
_LONGEST_TRANSACTION = 15 * MINUTE
_TICKS = (1 * MINUTE, 7 * MINUTE, 20 * MINUTE)


@cache
def _metric_hash(metric: str) -> int:
    return key_of(labels(metric, "a"))[0]


class Simulation:
    """The complete environment. `random` gives the numbers of the current step."""

    def __init__(self, folder: Path, *, groups: int, seal_rows: int, loses: bool) -> None:
        """Unless it `loses`, Kafka keeps everything that is not stored."""
        self.time, self.random, self._folder = TrueTime(START), Random(0), folder  # noqa: S311
        self.clocks = {name: MachineClock(self.time, self._beat_all) for name in MACHINES}
        self.ledger = Ledger(self.time, self.clocks["broker"], LIMITS)
        self.server = MemoryServer(MachineClock(self.time), self.clocks["store"])
        self.client = Client(self.time, self.clocks["gateway"], self.ledger, LIMITS)
        self.copies = {"node-a": LocalCopy(), "node-b": LocalCopy()}
        self.live: list[ShardProcess] = []
        self.is_store_away = self.is_log_away = False
        self.loses = loses
        self.options = options_of(folder, groups=groups, seal_rows=seal_rows)
        self.model = Model(
            self.ledger,
            POLICY,
            groups,
            designated_group(SHARD, groups),
            lambda metric: _metric_hash(metric) % groups,
            lambda: self.time.now_ms,
        )
        self.events: Counter[str] = Counter()
        """The numbers of events, to show that the histories reach the intended situations."""
        self.named: dict[int, tuple[str, str]] = {}
        """The key of every part id that was ever seen."""
        self._numbers, self._died = itertools.count(1), dict[str, int]()
        self._is_stalled = False
        self._stored_at = START

    # Processes.

    def start(
        self, host: str, *, mode: ReplayMode = ReplayMode.DIRECT, reads_tail: bool = True, fault: Fault | None = None
    ) -> ShardProcess | None:
        """Start the shard on a host, which must not run another one. None if it could not be started."""
        if any(one.process.host == host for one in self.live):
            return None
        process, store = self.process_on(host)
        store.fault = fault
        log = self.reader()
        options = replace(
            self.options, folder=self._folder / host, replay=ReplayOptions(mode, threshold=0), owner_name=host
        )
        clock = self.clocks[host]
        # Workers run whenever there are jobs, so the service has nothing to do.
        parts = ShardParts(
            options,
            log,
            cast("Store", store),
            CopyHome(self.copies[host]),
            MemoryDeadLetters(),
            clock,
            Present(clock, store.server_time),
            NoReplayService(),
            process,
        )
        started = ShardProcess(process, store, log, parts, reads_tail)
        return started if self._started(started) else None

    def _started(self, one: ShardProcess) -> bool:
        accepted = Accepted()
        owners = [other for other in self.live if not other.is_busy and self._is_owner(other)]
        while True:
            try:
                with self._busy(one):
                    one.shard = Shard.start(one.parts, one.status, accepted=accepted, reads_tail=one.reads_tail)
            except Crash:
                self.events["crash in a start"] += 1
                self.kill(one)
                return False
            except (Retryable, StillOwned, Fenced) as error:
                self.events[f"start refused: {type(error).__name__}"] += 1
                if isinstance(error, StillOwned) and not self._had_owner_lately():
                    raise Violation(f"a start is refused, though no owner is alive: {error}") from error
                self.kill(one)
                return False
            except (DataLost, HistoryExpired) as error:
                if not self.loses:
                    raise Violation(f"data is called lost that Kafka has: {error}") from error
                begins = self.ledger.log.ends().start
                if accepted.loss_to is not None and accepted.loss_to >= begins:
                    raise Violation("a loss was accepted, and the start is refused again") from error
                # An operator accepts it; again if Kafka has deleted more while the start waited for an owner.
                self.events["loss accepted"] += 1
                accepted = Accepted(loss_to=begins)
                continue
            if any(other in self.live for other in owners):
                raise Violation(f"{one.process.this_worker()} took the shard from a live owner")
            self.live.append(one)
            self.events[f"started, {one.status.phase.value}"] += 1
            return True

    def kill(self, one: ShardProcess) -> None:
        """Kill the process."""
        one.store.is_dead = True
        one.process.kill()
        if one in self.live:
            self.live.remove(one)

    def stop(self, one: ShardProcess) -> None:
        """Stop the process, as by SIGTERM."""
        with suppress(Crash, Fenced), self._busy(one):
            if one.shard is not None:
                one.shard.close()
        self.kill(one)

    def work(self, waves: int, fault: Fault | None = None) -> None:
        """Let a worker run some waves of jobs, and end it."""
        with self._worker(fault) as worker:
            self._waves(worker, waves)

    @contextmanager
    def _worker(self, fault: Fault | None = None) -> Iterator[ReplayWorker]:
        process, store = self.process_on("worker")
        store.fault = fault
        log, clock, options = self.reader(), self.clocks["worker"], self.options

        def records(_shard: int, start: int, end: int) -> Iterator[RecordBatch]:
            found = log.read(start, end)
            yield RecordBatch(found.offsets, found.times, found.times_checked, found.values)

        as_store = cast("Store", store)
        yield ReplayWorker(
            as_store,
            [SHARD],
            MemoryRunner(as_store, records, options.replay_settings, clock, sizes=TaskSizes(3, 2)),
            clock,
            process.this_worker(),
            job_order=JobOrder(Cutting(POLICY.flush_interval, GRACE), None),
            options=WorkerOptions(wave_records=20),
            is_gone=process.is_gone,
        )
        store.is_dead = True
        process.kill()

    def _waves(self, worker: ReplayWorker, waves: int) -> None:
        with suppress(Crash, Retryable):
            while waves and worker.step():
                self.events["wave of jobs"] += 1
                waves -= 1

    # Time.

    def pass_time(self, milliseconds: int, *, between: Callable[[], None] = lambda: None) -> None:
        """Let time pass, with everything running. `between` is called now and then."""
        end = self.time.now_ms + milliseconds
        while self.time.now_ms < end:
            self.time.advance(min(end - self.time.now_ms, self.random.choice(_TICKS)))
            between()
            self.turn_all()
            self.operate()

    def turn_all(self) -> None:
        """Let each process run."""
        for one in list(self.live):
            if one in self.live and not one.is_busy:
                self.turn(one)
        if not self.is_store_away and any(one.status.phase is Phase.REPLAYING for one in self.live):
            self.work(self.random.randint(1, 5))
        for one in list(self.live):
            if not one.reads_tail and not one.is_busy and one.shard is not None and one.shard.is_fully_stored:
                self.stop(one)

    def turn(self, one: ShardProcess, *, most_reads: int = 40, most_stores: int = 60) -> None:
        """Let a shard read and store for a while."""
        shard = one.shard
        assert shard is not None
        try:
            with self._busy(one):
                reads = self.random.randint(1, most_reads)
                while reads and (shard.step() or shard.waits_for_store()):
                    reads -= 1
                    if shard.waits_for_store():
                        shard.flusher.step()
                stores = self.random.randint(1, most_stores)
                while stores and shard.flusher.step() == 0:
                    stores -= 1
                shard.step()
        except Crash:
            self.events["crash at work"] += 1
            self.kill(one)
        except Fenced:
            self.events["zombie fenced"] += 1
            one.status.enter(Phase.FENCED, self.time.now_ms)
            self.kill(one)
        except (OffsetGone, PlanStopped) as error:
            # The next start reports what is lost. A fenced owner learns at its release that the next one has it.
            if not self.loses and self._is_owner(one):
                raise Violation(f"reading ended for good: {error}") from error
            self.kill(one)

    def operate(self) -> None:
        """What brokers and operators handle: transactions that take too long, and persistent problems."""
        opened, longest = self.ledger.open, _LONGEST_WITH_LOSS if self.loses else _LONGEST_UNSTORED
        if opened is not None and self.time.now_ms - opened.records[0].appended > _LONGEST_TRANSACTION:
            self.ledger.end(commit=False)
        if self.loses:
            self.delete_old_records()
        if self.is_stored():
            self._stored_at = self.time.now_ms
        elif self.time.now_ms - self._stored_at > longest:
            self.repair()

    def repair(self) -> None:
        """Fix everything, and let the shard store what is due. Raises `Violation` if it does not."""
        for clock in self.clocks.values():
            clock.be_right()
        self.is_store_away = False
        self.set_log_away(away=False)
        self.ledger.end(commit=True)
        for one in self.live:
            one.store.fault = None
        # A clock that was wrong is not trusted again for ten minutes, and a bucket that no record closes waits for
        # twice its grace. One worker throughout: only one that has observed a job for a whole lease takes it over from
        # a stalled worker.
        with self._worker() as worker:
            for _ in range(30):
                if not any(one.reads_tail and not one.is_busy for one in self.live):
                    self.start("node-a", mode=ReplayMode.AUTO) or self.start("node-b", mode=ReplayMode.AUTO)
                self.time.advance(MINUTE)
                self._waves(worker, 10)
                self.turn_all()
                is_active = any(one.status.phase is Phase.ACTIVE and not one.is_busy for one in self.live)
                if is_active and self.is_stored():
                    self._stored_at = self.time.now_ms
                    return
        state = [(one.process.this_worker(), one.status.phase, one.status.reason) for one in self.live]
        raise Violation(f"half an hour after all is right the shard is not active, or something is not stored: {state}")

    def is_stored(self) -> bool:
        """Whether every bucket that should be closed by now is closed and stored."""
        cuts = self.model.cuts
        due = (self.time.now_ms - 3 * GRACE) // POLICY.flush_interval - 1
        return bool(cuts) and max(cuts) >= due and self.stored_up_to() == cuts[max(cuts)].end

    def set_log_away(self, *, away: bool) -> None:
        """Make the brokers unreachable for all, or available again."""
        self.is_log_away = self.client.producer.away = away
        for one in self.live:
            one.log.reachable = not away

    def delete_old_records(self) -> None:
        """Apply Kafka's retention. Unless something may be lost, it waits for what is not stored."""
        keep_from = None
        if not self.loses:
            store = MemoryStore(self.server)
            rows = store.manifest(SHARD)
            ends = [cut.end for cut in rows.cuts] if rows is not None else []
            stored = self.stored_up_to()
            keep_from = stored if ends else 0
        self.ledger.delete_older_than(KAFKA_RETENTION, keep_from=keep_from)

    def stored_up_to(self) -> int:
        """The offset up to which every group is stored, by the model."""
        reached = 0
        for bucket in sorted(self.model.cuts):
            cut = self.model.cuts[bucket]
            if not cut.reset and not all(self.model.is_stored(bucket, each) for each in range(self.options.groups)):
                break
            reached = cut.end
        return reached

    # Internals.

    def process_on(self, host: str) -> tuple[Process, HookedStore]:
        """A new process, and the store as it sees it."""
        process = Process(host, next(self._numbers), self._died, self.time)
        return process, HookedStore(MemoryStore(self.server), lambda: self.is_store_away, self._stall, self._called)

    def reader(self) -> MemoryLog:
        """A reader of the log, for a new process."""
        log = self.ledger.log.another_reader()
        log.reachable = not self.is_log_away
        return log

    @contextmanager
    def _busy(self, one: ShardProcess) -> Iterator[None]:
        before, one.is_busy = one.is_busy, True
        try:
            yield
        finally:
            one.is_busy = before

    def _called(self, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "commit":
            write: ManifestWrite = arguments[1]
            self.model.committed(write)

    def _stall(self) -> None:
        """The process stalls during a call. Meanwhile the others run, and another process takes over."""
        if self._is_stalled:
            return
        self._is_stalled = True
        self.events["stalled in a call"] += 1
        try:
            self.time.advance(STALL_MS)
            self.operate()
            hosts = [host for host in self.copies if all(one.process.host != host for one in self.live)]
            if hosts:
                self.start(self.random.choice(hosts), mode=self.random.choice(list(ReplayMode)))
            self.pass_time(self.random.choice((0, 5 * MINUTE, HOUR, 2 * HOUR)))
            if self.random.random() < 0.3:
                self.work(3)
        finally:
            self._is_stalled = False

    def _beat_all(self) -> None:
        """While a process sleeps, owners continue to write heartbeats."""
        for one in list(self.live):
            if not one.is_busy and one.shard is not None:
                try:
                    with self._busy(one):
                        one.shard.flusher.step()
                except Crash:
                    self.kill(one)
                except Fenced:
                    self.kill(one)

    def _owner(self) -> str:
        """The process that owns the shard."""
        state = MemoryStore(self.server).state(SHARD)
        return state.owner.rpartition("/")[0] if state is not None else ""

    def _had_owner_lately(self) -> bool:
        """Whether the owner is alive, or died so recently that other hosts can't know."""
        died = self._died.get(self._owner())
        return died is None or self.time.now_ms - died < OWNER_TIMEOUT_S * 1000

    def _is_owner(self, one: ShardProcess) -> bool:
        return self._owner() == one.process.this_worker()
