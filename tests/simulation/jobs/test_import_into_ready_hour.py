"""An import into a ready hour lands in the topic, a shard stores it, the revision of the hour rises, and an export of
the hour runs again.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from strandline.jobs.board import BulkBoard
from strandline.jobs.exporting.day_manifest import NAME, DayAction, DayManifest
from strandline.jobs.exporting.export_kind import EXPORT, ExportKind
from strandline.jobs.exporting.planning import ExportOptions, StoredState, plan_export
from strandline.jobs.importing.planning import ImportOptions
from strandline.jobs.importing.spec import Format
from strandline.jobs.landing.memory_part_log import MemoryCluster
from strandline.jobs.worker import BulkWorker
from strandline.recovery.cutting import Cutting
from strandline.recovery.periods import Period
from strandline.recovery.readiness import Readiness, StoredDataset, Verdict, readiness
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart
from strandline.store.protocol import Store
from support.bulk_worlds import LIFE, Fault, FaultKind
from support.job_worlds import JobWorld
from support.shard_world import HOUR, MINUTE, START, World, produce_everywhere
from support.stored_samples import rows_of_table

pytestmark = pytest.mark.simulation

FIRST = START // HOUR
MAPPING = {
    "metric": {"column": "metric"},
    "value": "value",
    "time": {"column": "time", "unit": "ms"},
    "constants": {"name": "a"},
}
OPTIONS = ImportOptions(Format.CSV, MAPPING, part_bytes=60, chunk_bytes=40, max_record=60)


class ReusableStore:
    """A store that stays open when a user closes it, because others use it too."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        """Does nothing."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    (tmp_path / "shard").mkdir()
    made = World(tmp_path / "shard")
    yield made
    made.close()


def of_first_hour(world: World) -> Readiness:
    options, now = world.options, world.clock.now_ms()
    cutting = Cutting(options.policy.flush_interval, options.grace)
    stored = StoredDataset("metrics", cutting, options.groups, [world.manifest()], now - options.row_lifetime, now)
    return readiness(stored, Period(FIRST))


def imported(folder: Path, rows: list[tuple[str, int, float]]) -> list[bytes]:
    """The records that an import leaves in the topic although a worker is lost during it."""
    folder.mkdir()
    jobs = JobWorld(folder)
    jobs.cluster = MemoryCluster(jobs.clock, partitions=1)
    text = "\n".join(["time,metric,value", *(f"{time},{metric},{value}" for metric, time, value in rows)])
    jobs.planned(text.encode(), OPTIONS)
    assert not jobs.work(Fault(FaultKind.CRASH_AFTER, 25))
    assert jobs.work()
    assert jobs.board.job("job").state is BulkJobState.DONE
    return [record.value for record in jobs.cluster.read()[0]]


def exported(world: World, folder: Path, number: int) -> tuple[DayAction, list[tuple[int, float]], int]:
    """Export a metric's first hour. Returns the outcome of its day, the current samples, and the day's revision."""
    store, now = world.sqlite, world.clock.now_ms()
    stored = StoredState("metrics", world.options.groups, {0: world.manifest()}, frozenset(), now)
    options = ExportOptions(str(folder), "metric_1", FIRST * HOUR, (FIRST + 1) * HOUR)
    plan = plan_export(store, stored, options, f"plan-{number}")
    if plan.parts:
        job = f"1970-{number}"
        board = BulkBoard(store, "metrics", world.clock)
        parts = [BulkPart("metrics", job, at, part.to_json(), LIFE) for at, part in enumerate(plan.parts)]
        board.add(BulkJob("metrics", job, EXPORT, plan.spec.to_json(), plan.hash, len(parts), LIFE, now), parts)
        kind = ExportKind(lambda: cast("Store", ReusableStore(store)), world.clock)
        worker = BulkWorker(board, {EXPORT: kind}, world.clock, "worker")
        while worker.step():
            pass
        assert board.job(job).state is BulkJobState.DONE
    (day,) = plan.days
    path = folder / f"day={day.day}" / NAME
    manifest = DayManifest.from_json(path.read_bytes(), str(path))
    rows = [row for file in manifest.files for row in rows_of_table(pq.ParquetFile(path.parent / file.name).read())]
    return day.choice, [(time, value) for _, time, value in rows], manifest.revision


def test_an_import_into_a_ready_hour_raises_its_revision_and_its_export_runs_again(
    world: World, tmp_path: Path
) -> None:
    world.start()
    produce_everywhere(world)
    world.pass_hours(3)
    before = of_first_hour(world)
    assert (before.verdict, before.revision) == (Verdict.READY, 0)
    assert exported(world, tmp_path / "out", 1) == (DayAction.EXPORT, [(START, 1.0)], 1)
    assert exported(world, tmp_path / "out", 2)[0] is DayAction.UNCHANGED

    # One sample replaces a stored one, and others are new.
    rows = [("metric_1", START, 7.0), *(("metric_1", START + at * MINUTE, float(at)) for at in range(1, 9))]
    for value in imported(tmp_path / "import", rows):
        world.log.append(value, world.clock.now_ms())
    assert of_first_hour(world).revision == 0, "it is not stored yet"
    world.settle()
    world.pass_hours(2)
    after = of_first_hour(world)
    assert (after.verdict, after.revision > before.revision) == (Verdict.READY, True)
    assert after.late_samples == len(rows)
    samples = [(time, value) for _, time, value in rows]
    assert exported(world, tmp_path / "out", 3) == (DayAction.EXPORT, samples, 2)
    assert exported(world, tmp_path / "out", 4)[0] is DayAction.UNCHANGED
