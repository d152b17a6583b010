"""Exports from in-memory stores into a folder, with workers that may crash at any call."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq

from strandline.clock import ManualClock
from strandline.jobs.board import BulkBoard
from strandline.jobs.exporting.day_manifest import NAME, DayAction, DayManifest
from strandline.jobs.exporting.export_kind import EXPORT, ExportKind
from strandline.jobs.exporting.planning import ExportOptions, ExportPlan, StoredState, plan_export
from strandline.jobs.exporting.target import Target
from strandline.jobs.worker import BulkWorker
from strandline.recovery.leasing import LeasePolicy
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.protocol import Store, StoreUnavailable
from support.bulk_worlds import LIFE, Crash, Fault, Hooked
from support.memory_store import MemoryServer, MemoryStore
from support.stored_samples import DATASET, DAY, GROUPS, START, Series, StoredSamples, rows_of_table


@dataclass
class ExportWorld:
    """A stored dataset, a folder, and any number of workers one after the other. `to` is another target than the
    folder.
    """

    folder: Path
    shards: int = 1
    to: str = ""
    data_life: int = 30 * DAY
    failures_allowed: int = 1_000
    clock: ManualClock = field(default_factory=lambda: ManualClock(START + 3 * DAY))
    dead: set[str] = field(default_factory=set)
    calls: Counter[str] = field(default_factory=Counter)
    jobs: int = 0
    workers: int = 0
    server: MemoryServer = field(init=False)
    stored: StoredSamples = field(init=False)

    def __post_init__(self) -> None:
        self.server = MemoryServer(self.clock)
        self.store = cast("Store", MemoryStore(self.server))
        self.stored = StoredSamples(self.store, self.clock, self.shards)
        self.stored.load.data_life = self.data_life
        self.board = BulkBoard(self.store, DATASET, self.clock)

    def options(self, selector: str = "m", *, days: int = 1, part_samples: int = 40) -> ExportOptions:
        return ExportOptions(self.to or str(self.folder / "out"), selector, START, START + days * DAY, part_samples)

    def now(self, *not_ready: int) -> StoredState:
        """The current state of the dataset."""
        return StoredState(DATASET, GROUPS, self.stored.manifests(), frozenset(not_ready), self.clock.now_ms())

    def plan(self, options: ExportOptions | None = None) -> ExportPlan:
        """Plan an export, and add its job if there is something to do."""
        self.jobs += 1
        plan = plan_export(self.store, self.now(), options or self.options(), f"plan-{self.jobs}")
        if plan.parts:
            name, now = f"2026-{self.jobs:03d}", self.clock.now_ms()
            job = BulkJob(DATASET, name, EXPORT, plan.spec.to_json(), plan.hash, len(plan.parts), LIFE, now)
            parts = [BulkPart(DATASET, name, at, part.to_json(), LIFE) for at, part in enumerate(plan.parts)]
            self.board.add(job, parts)
        return plan

    def worker(self, fault: Fault | None = None) -> BulkWorker:
        name = f"worker-{self.workers}"
        self.workers += 1
        store = cast("Store", Hooked(MemoryStore(self.server), fault, self.calls))

        def open_target(uri: str) -> Target:
            return cast("Target", Hooked(Target(uri), fault, self.calls))

        policy = LeasePolicy(failures_allowed=self.failures_allowed)
        board = BulkBoard(store, DATASET, self.clock, policy, lambda other: other in self.dead)
        return BulkWorker(board, {EXPORT: ExportKind(lambda: store, self.clock, open_target)}, self.clock, name)

    def work(self, fault: Fault | None = None) -> bool:
        """Run a new worker until there is nothing left to do. False if it crashed."""
        worker = self.worker(fault)
        try:
            while worker.step():
                pass
            # Wait after a retryable failure.
            self.clock.sleep(120)
            while worker.step():
                pass
        except Crash:
            return False
        except StoreUnavailable:
            return self.work()
        finally:
            self.dead.add(f"worker-{self.workers - 1}")
        return True

    def export(self, options: ExportOptions | None = None) -> list[DayAction]:
        """Plan and run an export. Returns the outcome of each day."""
        plan = self.plan(options)
        assert self.work()
        return [day.choice for day in plan.days]

    def manifest(self, day: int = 0) -> DayManifest | None:
        """The manifest of a day, counted from the first."""
        path = self.day_folder(day) / NAME
        return DayManifest.from_json(path.read_bytes(), str(path)) if path.exists() else None

    def day_folder(self, day: int = 0) -> Path:
        date = str(pa.scalar(START + day * DAY, pa.timestamp("ms")).as_py().date())
        return self.folder / "out" / f"day={date}"

    def visible(self, day: int = 0) -> list[tuple[Series, int, float]] | None:
        """The samples in the files of a day's manifest, file by file; None without a manifest."""
        manifest = self.manifest(day)
        if manifest is None:
            return None
        found: list[tuple[Series, int, float]] = []
        for file in manifest.files:
            # Only the file's own columns, not those of the folder's name.
            table = pq.ParquetFile(self.day_folder(day) / file.name).read()
            assert table.num_rows == file.rows
            found += rows_of_table(table)
        return found
