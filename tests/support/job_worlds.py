"""Imports with in-memory store and Kafka, and workers that may crash at any call to them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from strandline.clock import ManualClock
from strandline.jobs.board import BulkBoard
from strandline.jobs.importing.import_kind import IMPORT, ImportKind
from strandline.jobs.importing.planning import ImportOptions, ImportPlan, plan_import
from strandline.jobs.job_lifecycle import WorkerRules
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.running import InProcessRunner, JobKind, RunningPart
from strandline.jobs.worker import BulkWorker
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.record_headers import CHUNK_HEADER, JOB_HEADER, PART_HEADER
from support.bulk_worlds import DATASET, LIFE, BulkWorld, Fault, Stalls

Pace = Callable[[int, Callable[[], None]], None]
"""Called with the number of samples of a chunk before it lands, and a function that raises if the part must be given
up.
"""


class PacedImports(ImportKind):
    """Imports whose chunks a test can delay."""

    pace: Pace = staticmethod(lambda _samples, _check: None)

    def run(self, running: RunningPart) -> PartOutcome:
        def pace(samples: int) -> None:
            self.pace(samples, running.check)
            running.pace(samples)

        return super().run(replace(running, pace=pace))


class JobWorld(BulkWorld):
    """A store, a topic, and any number of workers one after the other."""

    def __init__(self, folder: Path, *, failures_allowed: int = 3, width: int = 1) -> None:
        """`width` is the number of parts that each worker leases at a time."""
        super().__init__(failures_allowed)
        self.folder, self.width = folder, width

    def planned(self, text: bytes, options: ImportOptions, name: str = "job") -> ImportPlan:
        """Write a file, and plan its import."""
        path = self.folder / f"{name}.txt"
        path.write_bytes(text)
        return self.planned_of(path, options, name)

    def planned_of(self, path: Path, options: ImportOptions, name: str = "job") -> ImportPlan:
        """Plan the import of a file or a folder."""
        return self.planned_from([str(path)], options, name)

    def planned_from(self, uris: Sequence[str], options: ImportOptions, name: str = "job") -> ImportPlan:
        """Plan the import of URIs and patterns."""
        plan = plan_import(uris, options)
        now = self.clock.now_ms()
        spec, parts = plan.spec.to_json(), len(plan.parts)
        job = BulkJob(DATASET, name, IMPORT, spec, plan.hash, parts, LIFE, now, expires_after=5 * 86_400_000)
        self.board.add(job, [BulkPart(DATASET, name, at, part.to_json(), LIFE) for at, part in enumerate(plan.parts)])
        return plan

    def worker(
        self,
        fault: Fault | None = None,
        pace: Pace = lambda _samples, _check: None,
        stalls: Stalls | None = None,
        clock: ManualClock | None = None,
        store_stalls: Stalls | None = None,
    ) -> BulkWorker:
        """A new worker. `stalls` and `store_stalls` name the calls to the brokers and to the store before which it is
        suspended. `clock` is its machine's clock.
        """
        clock = clock or self.clock

        def open_log() -> PartLog:
            return PartLog(self.transactions(fault, stalls), clock)

        board = self.board_of(self.store(fault, store_stalls), clock)
        imports = PacedImports(open_log, clock)
        imports.pace = pace
        kinds: dict[str, JobKind] = {IMPORT: imports}
        runner = InProcessRunner(kinds, clock, self.width)
        # One at a time, because the in-memory implementations are not thread-safe.
        return BulkWorker(board, kinds, clock, self.new_name(), WorkerRules(concurrent_fences=1), runner=runner)

    def operator(self, fault: Fault | None = None) -> BulkBoard:
        """The job board of an operator, whose command may end at any call."""
        return BulkBoard(self.store(fault), DATASET, self.clock)

    def records(self) -> Iterator[tuple[tuple[str, int, int], bytes]]:
        """All visible records, with the job, part and chunk that they belong to."""
        for records in self.cluster.read().values():
            for record in records:
                headers = dict(record.headers)
                where = (str(headers[JOB_HEADER], "utf-8"), int(headers[PART_HEADER]), int(headers[CHUNK_HEADER]))
                yield where, record.value

    def samples(self) -> Counter[tuple[tuple[str, int, int], int, float]]:
        """How often each sample is in the topic, by job, part and chunk: more than once is a duplicate."""
        found: Counter[tuple[tuple[str, int, int], int, float]] = Counter()
        for where, value in self.records():
            columns = decode_batch([value], Limits())
            assert not columns.faults
            found.update((where, int(t), float(v)) for t, v in zip(columns.time, columns.value, strict=True))
        return found
