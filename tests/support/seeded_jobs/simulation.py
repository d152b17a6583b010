"""Workers and operators of a dataset's jobs, with a store, a topic and a file system that fail at times."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any, cast
from unittest.mock import patch

from strandline.clock import ManualClock
from strandline.errors import Fatal, Retryable
from strandline.jobs.board import BulkBoard
from strandline.jobs.breaker import BreakerRules
from strandline.jobs.importing.import_kind import IMPORT, ImportKind
from strandline.jobs.importing.planning import ImportOptions, plan_import
from strandline.jobs.importing.spec import Format
from strandline.jobs.landing.memory_part_log import MemoryCluster, MemoryTransactions
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.landing.transactions import LandingUnknown, PartTransactions
from strandline.jobs.worker import BulkWorker, WorkerRules
from strandline.kafka.errors import LogUnreachable
from strandline.node.bulk.changing import request_job_stop, resume_job
from strandline.recovery.lease_keeper import LeaseKeeper
from strandline.recovery.leasing import LeasePolicy
from strandline.store.bulk_jobs import BulkJob, BulkPart, Wanted
from strandline.store.protocol import Store, StoreUnavailable
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.record_headers import JOB_HEADER
from support.memory_store import MemoryServer, MemoryStore
from support.seeded_jobs.files import Files, FileSystem
from support.seeded_jobs.model import JobModel, Landed, Row
from support.seeded_jobs.scheduling import Process, Scheduler

DATASET = "metrics"
START_MS = 1_800_000_000_000
DAY_MS = 86_400_000
HOSTS = ("a", "b")
_LIFE = 4_000 * DAY_MS
_MAPPING = {"metric": "cpu", "value": "value", "time": {"column": "time", "unit": "ms"}, "labels": ["host"]}
# Fence sequentially: concurrent threads would not be deterministic.
_RULES = WorkerRules(BreakerRules(0.05, 8), concurrent_fences=1)


class Simulation:
    """The simulated system. `random` makes all decisions; each step of a history replaces it."""

    def __init__(self) -> None:
        self.random = Random(0)  # noqa: S311
        self.clock = ManualClock(START_MS)
        self.server, self.cluster = MemoryServer(self.clock), MemoryCluster(self.clock, partitions=2)
        self.files = Files()
        self.scheduler = Scheduler(self.clock, self._choose)
        self.offsets_ms = dict.fromkeys(HOSTS, 0)
        self.is_store_away = False
        self.models: dict[str, JobModel] = {}
        self.contents: dict[str, bytes] = {}
        self.events: Counter[str] = Counter()
        self.killed: set[str] = set()
        self._processes = 0
        self._decoded: dict[bytes, list[tuple[int, float]]] = {}
        self._by_thread = threading.local()

    def _choose(self, count: int) -> int:
        return self.random.randrange(count)

    # Jobs.

    def plan(self, name: str, rows: list[Row], part_bytes: int, chunk_bytes: int) -> None:
        lines = [f"{row.time},host-{index % 3},{'?' if row.is_bad else row.value}" for index, row in enumerate(rows)]
        path = f"/{name}.csv"
        self.contents[path] = "\n".join(["time,host,value", *lines]).encode()
        self.files.put(path, self.contents[path], START_MS)
        options = ImportOptions(Format.CSV, _MAPPING, part_bytes=part_bytes, chunk_bytes=chunk_bytes, max_record=60)
        plan = plan_import([path], options)
        job = BulkJob(
            DATASET,
            name,
            IMPORT,
            plan.spec.to_json(),
            plan.hash,
            len(plan.parts),
            _LIFE,
            self.clock.now_ms(),
            expires_after=5 * DAY_MS,
        )
        self.models[name] = JobModel(name, rows, {"bad rows"} if any(row.is_bad for row in rows) else set())
        parts = [BulkPart(DATASET, name, at, part.to_json(), _LIFE) for at, part in enumerate(plan.parts)]
        self.board().add(job, parts)

    def happened(self, what: str) -> None:
        """Record an event that may explain the state of a job."""
        for model in self.models.values():
            model.was.add(what)
        self.events[what] += 1

    def board(self) -> BulkBoard:
        """A board whose calls never fail, for checks."""
        return BulkBoard(cast("Store", _Observed(MemoryStore(self.server), self)), DATASET, self.clock)

    def landed(self, job: str) -> tuple[Landed, int]:
        """The committed samples of a job, and their number of records."""
        found, records = Landed(), 0
        for partition in self.cluster.partitions:
            for record in partition:
                if record.is_committed and dict(record.headers)[JOB_HEADER].decode() == job:
                    records += 1
                    found.update(self._samples(record.value))
        return found, records

    # Processes.

    def start_worker(self, host: str) -> Process:
        process, board = self._process(host)

        def work() -> None:
            try:
                self._worker(process, board).run_until_done()
            except Fatal as error:
                # Like the command, which ends with the error.
                self.events[f"worker ended: {type(error).__name__}"] += 1

        self._start(process, work)
        return process

    def start_stop(self, host: str, job: str, wanted: Wanted) -> Process:
        """An operator's `job pause` or `job cancel`."""
        process, board = self._process(host)

        def stop() -> None:
            request_job_stop(board, job, wanted, process.clock)
            worker = self._worker(process, board)
            for _ in range(4):
                worker.step(job)
                if not board.job(job).wanted:
                    return
                process.clock.sleep(0.5)

        self._start(process, _command(stop))
        return process

    def start_resume(self, host: str, job: str) -> Process:
        """An operator's `job resume`."""
        process, board = self._process(host)
        self._start(process, _command(lambda: resume_job(board, job, process.clock)))
        return process

    def kill(self, process: Process) -> None:
        process.is_dead = True
        self.killed.add(process.name)
        self.happened("crash")

    def _process(self, host: str) -> tuple[Process, BulkBoard]:
        self._processes += 1
        process = Process(self.scheduler, host, self._processes, lambda: self.offsets_ms.get(host, 0))
        self.scheduler.processes.append(process)
        store = Hooked(_Observed(MemoryStore(self.server), self), process, lambda _name: StoreUnavailable)
        is_gone = _GoneOn(host, self.killed)
        return process, BulkBoard(cast("Store", store), DATASET, process.clock, LeasePolicy(), is_gone)

    def _start(self, process: Process, body: Callable[[], None]) -> None:
        def run() -> None:
            self._by_thread.process = process
            try:
                body()
            finally:
                if process.is_dead:
                    self.killed.add(process.name)
                    self.happened("crash")

        process.start(run)

    def _worker(self, process: Process, board: BulkBoard) -> BulkWorker:
        def open_log() -> PartLog:
            hooked = Hooked(MemoryTransactions(self.cluster), process, _unanswered)
            return PartLog(cast("PartTransactions", hooked), process.clock)

        return BulkWorker(board, {IMPORT: ImportKind(open_log, process.clock)}, process.clock, process.name, _RULES)

    # Replacements of real components.

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """A context in which files are in memory and the scheduler renews leases."""

        def file_system(uri: str) -> tuple[FileSystem, str]:
            process = getattr(self._by_thread, "process", None)

            def call(function: Callable[..., Any], *arguments: Any) -> Any:
                return function(*arguments) if process is None else process.call(OSError, function, *arguments)

            return FileSystem(self.files, call), uri

        @contextmanager
        def keeping(keeper: LeaseKeeper[Any]) -> Iterator[None]:
            process = self._by_thread.process
            process.keepers.append(keeper)
            try:
                yield
            finally:
                process.keepers.remove(keeper)

        with (
            patch("strandline.jobs.sources.files.file_system", file_system),
            patch.object(LeaseKeeper, "keeping", keeping),
        ):
            try:
                yield
            finally:
                self.scheduler.end()

    def _samples(self, value: bytes) -> list[tuple[int, float]]:
        if value not in self._decoded:
            columns = decode_batch([value], Limits())
            self._decoded[value] = list(zip(columns.time.tolist(), columns.value.tolist(), strict=True))
        return self._decoded[value]


class _GoneOn:
    """Detects dead processes of the same host, as a process of this host would."""

    def __init__(self, host: str, killed: set[str]) -> None:
        self._host, self._killed = host, killed

    def __call__(self, worker: str) -> bool:
        return worker.startswith(f"{self._host}/") and worker in self._killed


class _Observed:
    """The store, which reports each change to the model."""

    def __init__(self, store: MemoryStore, simulation: Simulation) -> None:
        self._store, self._simulation = store, simulation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def replace_bulk_job(self, before: BulkJob, after: BulkJob) -> bool:
        self._require_there()
        simulation = self._simulation
        landed, records = simulation.landed(before.job) if before.state is not after.state else (Landed(), 0)
        is_replaced = self._store.replace_bulk_job(before, after)
        if is_replaced:
            simulation.models[before.job].job_changed(before, after, landed, records)
            if before.state is not after.state:
                simulation.events[f"{before.state} to {after.state}"] += 1
        return is_replaced

    def replace_bulk_part(self, before: BulkPart, after: BulkPart) -> bool:
        self._require_there()
        is_replaced = self._store.replace_bulk_part(before, after)
        if is_replaced:
            self._simulation.models[before.job].part_changed(before, after)
        return is_replaced

    def bulk_jobs(self, dataset: str) -> Any:
        self._require_there()
        return self._store.bulk_jobs(dataset)

    def bulk_parts(self, dataset: str, job: str) -> Any:
        self._require_there()
        return self._store.bulk_parts(dataset, job)

    def _require_there(self) -> None:
        if self._simulation.is_store_away:
            raise StoreUnavailable("the store is away")


class Hooked:
    """The external calls of a process. `unavailable` returns the error for a lost answer."""

    def __init__(self, target: object, process: Process, unavailable: Callable[[str], type[Exception]]) -> None:
        self._target, self._process, self._unavailable = target, process, unavailable

    def __getattr__(self, name: str) -> Any:
        function, unavailable = getattr(self._target, name), self._unavailable(name)

        def hooked(*arguments: Any, **options: Any) -> Any:
            before, self._process.inside = self._process.inside, name
            try:
                return self._process.call(unavailable, function, *arguments, **options)
            finally:
                self._process.inside = before

        self.__dict__[name] = hooked
        return hooked


def _unanswered(call: str) -> type[Exception]:
    return LandingUnknown if call == "commit" else LogUnreachable


def _command(body: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        # Like the command, which prints the error.
        with suppress(Fatal, Retryable):
            body()

    return run
