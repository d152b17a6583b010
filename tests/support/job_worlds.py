"""Imports over twins of the store and of Kafka, with workers that may crash at any call to either."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, cast

from strandline.clock import ManualClock
from strandline.jobs.attending import WorkerRules
from strandline.jobs.board import BulkBoard
from strandline.jobs.importing.import_kind import IMPORT, ImportKind
from strandline.jobs.importing.planning import ImportOptions, ImportPlan, plan_import
from strandline.jobs.landing.memory_part_log import MemoryCluster, MemoryTransactions
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.running import InProcessRunner, JobKind, RunningPart
from strandline.jobs.worker import BulkWorker
from strandline.recovery.leasing import LeasePolicy
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.protocol import Store, StoreUnavailable
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.record_headers import CHUNK_HEADER, JOB_HEADER, PART_HEADER
from support.memory_store import MemoryServer, MemoryStore

DATASET = "metrics"
LIFE = 10 * 86_400_000


class Crash(BaseException):
    """The process is gone: nothing may catch this."""


class Harm(Enum):
    """What happens at a call."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOST_ANSWER = "lost answer"


@dataclass
class Fault:
    """Something that happens to a process at one of its calls."""

    harm: Harm
    calls_left: int
    is_over: bool = False

    def next_call(self) -> Harm | None:
        """What happens to this call. A process that has crashed makes no more of them."""
        self.calls_left -= 1
        if self.is_over:
            return None if self.harm is Harm.LOST_ANSWER else Harm.CRASH_BEFORE
        if self.calls_left > 0:
            return None
        self.is_over = True
        return self.harm


class Hooked:
    """Calls of one process to the store or to the brokers, each of which may be its last."""

    def __init__(
        self,
        target: object,
        fault: Fault | None,
        calls: Counter[str],
        stalls: Mapping[str, Callable[[], None]] | None = None,
    ) -> None:
        """A process stands still before each call that `stalls` names, while what it names happens."""
        self._target, self._fault, self._calls, self._stalls = target, fault, calls, stalls or {}

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._target, name)

        def hooked(*arguments: Any, **options: Any) -> Any:
            self._calls[name] += 1
            harm = self._fault.next_call() if self._fault is not None else None
            if harm is Harm.CRASH_BEFORE:
                raise Crash
            if name in self._stalls:
                self._stalls[name]()
            result = call(*arguments, **options)
            if harm is Harm.CRASH_AFTER:
                raise Crash
            if harm is Harm.LOST_ANSWER:
                raise StoreUnavailable(f"the answer to {name} was lost")
            return result

        return hooked


Pace = Callable[[int, Callable[[], None]], None]
"""Gets the samples of a chunk before it lands, and what tells whether the part is to be given up."""


class PacedImports(ImportKind):
    """Imports whose chunks a test holds back."""

    pace: Pace = staticmethod(lambda _samples, _check: None)

    def run(self, running: RunningPart) -> PartOutcome:
        return super().run(replace(running, pace=lambda samples: self.pace(samples, running.check)))


class JobWorld:
    """A store, a topic, and any number of workers one after the other."""

    def __init__(self, folder: Path, *, failures_allowed: int = 3, width: int = 1) -> None:
        """`width` is how many parts each worker leases at a time."""
        self.folder, self.width = folder, width
        self.policy = LeasePolicy(failures_allowed=failures_allowed)
        self.clock = ManualClock(1_800_000_000_000)
        self.server = MemoryServer(self.clock)
        self.cluster = MemoryCluster(self.clock, partitions=3)
        self.board = BulkBoard(cast("Store", MemoryStore(self.server)), DATASET, self.clock)
        self.dead: set[str] = set()
        self.calls: Counter[str] = Counter()
        self._workers = 0

    def planned(self, text: bytes, options: ImportOptions, name: str = "job") -> ImportPlan:
        """Write a file, and a plan to import it."""
        path = self.folder / f"{name}.txt"
        path.write_bytes(text)
        return self.planned_of(path, options, name)

    def planned_of(self, path: Path, options: ImportOptions, name: str = "job") -> ImportPlan:
        """A plan to import a file or a folder."""
        plan = plan_import([str(path)], options)
        now = self.clock.now_ms()
        spec, parts = plan.spec.to_json(), len(plan.parts)
        job = BulkJob(DATASET, name, IMPORT, spec, plan.hash, parts, LIFE, now, expires_after=5 * 86_400_000)
        self.board.add(job, [BulkPart(DATASET, name, at, part.to_json(), LIFE) for at, part in enumerate(plan.parts)])
        return plan

    def worker(
        self,
        fault: Fault | None = None,
        pace: Pace = lambda _samples, _check: None,
        stalls: Mapping[str, Callable[[], None]] | None = None,
        clock: ManualClock | None = None,
        store_stalls: Mapping[str, Callable[[], None]] | None = None,
    ) -> BulkWorker:
        """A new worker. `stalls` says in which calls to the brokers it stands still, `store_stalls` in which calls to
        the store; `clock` is that of its machine.
        """
        clock = clock or self.clock
        name = f"worker-{self._workers}"
        self._workers += 1
        store = Hooked(MemoryStore(self.server), fault, self.calls, store_stalls)

        def open_log() -> PartLog:
            transactions = Hooked(MemoryTransactions(self.cluster), fault, self.calls, stalls)
            return PartLog(cast("MemoryTransactions", transactions), clock)

        board = BulkBoard(cast("Store", store), DATASET, clock, self.policy, lambda other: other in self.dead)
        imports = PacedImports(open_log, clock)
        imports.pace = pace
        kinds: dict[str, JobKind] = {IMPORT: imports}
        runner = InProcessRunner(kinds, clock, self.width)
        # One at a time: the twins are for one thread.
        return BulkWorker(board, kinds, clock, name, WorkerRules(fences_at_once=1), runner=runner)

    def operator(self, fault: Fault | None = None) -> BulkBoard:
        """The jobs, for an operator whose command may end at any call."""
        store = Hooked(MemoryStore(self.server), fault, self.calls)
        return BulkBoard(cast("Store", store), DATASET, self.clock)

    def work(self, fault: Fault | None = None, steps: int = 1_000) -> bool:
        """Let a new worker work until nothing is left to do; False if it crashed."""
        worker = self.worker(fault)
        try:
            for _ in range(steps):
                if not worker.step():
                    # A failure that passes is waited for.
                    self.clock.sleep(120)
                    if not worker.step():
                        break
        except Crash:
            return False
        except StoreUnavailable:
            # As `run_until_done` does.
            return self.work()
        finally:
            self.dead.add(f"worker-{self._workers - 1}")
        return True

    def records(self) -> Iterator[tuple[tuple[str, int, int], bytes]]:
        """Every record that readers see, with the job, part and chunk it belongs to."""
        for records in self.cluster.read().values():
            for record in records:
                headers = dict(record.headers)
                where = (str(headers[JOB_HEADER], "utf-8"), int(headers[PART_HEADER]), int(headers[CHUNK_HEADER]))
                yield where, record.value

    def samples(self) -> Counter[tuple[tuple[str, int, int], int, float]]:
        """How often each sample is in the topic, by job, part and chunk: more than once is a double."""
        found: Counter[tuple[tuple[str, int, int], int, float]] = Counter()
        for where, value in self.records():
            columns = decode_batch([value], Limits())
            assert not columns.faults
            found.update((where, int(t), float(v)) for t, v in zip(columns.time, columns.value, strict=True))
        return found
