"""Exports over in-memory store and Kafka: after a crash at any call, readers of a day see one complete state of the
store.
"""

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from strandline.jobs.exporting import target
from strandline.jobs.exporting.day_manifest import ConflictingExport, DayAction
from strandline.jobs.importing.part_sources import chunks_of
from strandline.jobs.importing.planning import ImportOptions, plan_import
from strandline.jobs.importing.spec import Format
from strandline.jobs.reading.pins import PinnedRowExpired
from strandline.jobs.report import JobReport
from strandline.jobs.sample_block import SampleBlock
from strandline.recovery.periods import HOUR
from strandline.store.bulk_jobs import BulkJobState
from support.bulk_worlds import Fault, FaultKind
from support.export_worlds import ExportWorld
from support.sample_blocks import samples_of
from support.stored_samples import DAY, START, Sample

pytestmark = pytest.mark.simulation

FIRST = START // HOUR
MINUTE = 60_000


class LostAfterWritingItsFile(Fault):
    """A worker that crashes before its first call after it wrote a file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(FaultKind.CRASH_BEFORE, 0)
        self._folder = folder

    def next_call(self) -> FaultKind | None:
        return self.kind if any(path.stat().st_size for path in self._folder.glob("*.parquet")) else None


class FullDisk:
    """A local file system that is full."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pafs.LocalFileSystem(), name)

    def open_output_stream(self, path: str, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", path)


def scraped(bucket: int, series: int = 6, metric: str = "m", value: float = 0.0) -> list[Sample]:
    """Two samples of some series in an hour."""
    return [
        ({"__name__": metric, "host": f"h{number}", "Zone": "z"}, bucket * HOUR + at * MINUTE, value + number + at)
        for number in range(series)
        for at in (5, 35)
    ]


def filled(folder: Path, *, shards: int = 1, hours: int = 24) -> ExportWorld:
    world = ExportWorld(folder, shards)
    for bucket in range(FIRST, FIRST + hours):
        for shard in range(shards):
            world.stored.write(shard, bucket, scraped(bucket) + scraped(bucket, 2, "other"))
    return world


def test_a_day_is_exported_sorted_in_files_that_do_not_overlap(tmp_path: Path) -> None:
    world = filled(tmp_path, hours=30)
    assert world.export(world.options(days=2)) == [DayAction.EXPORT, DayAction.EXPORT]
    for day in (0, 1):
        begin = START + day * DAY
        expected = world.stored.expected(begin, begin + DAY, __name__="m")
        assert expected
        assert world.visible(day) == expected
    first = world.manifest(0)
    assert first is not None
    assert len(first.files) > 3
    assert (first.revision, first.ready) == (1, True)
    job = world.board.jobs()[0]
    assert job.state is BulkJobState.DONE
    report = JobReport.from_json(job.report)
    assert report.counts.samples == 6 * 2 * 30
    assert not (tmp_path / "out" / "_plans").exists() or not list((tmp_path / "out" / "_plans").iterdir())


def test_an_unchanged_day_is_left_alone_and_a_late_write_exports_it_again(tmp_path: Path) -> None:
    world = filled(tmp_path, hours=48)
    options = world.options(days=2)
    world.export(options)
    before = world.manifest(0)
    files = {path.name for path in world.day_folder().iterdir()}
    assert world.export(options) == [DayAction.UNCHANGED, DayAction.UNCHANGED]
    assert {path.name for path in world.day_folder().iterdir()} == files
    # A sample that replaces another one, and one of a new series, both of the first day.
    late = START + 5 * MINUTE
    world.stored.write(
        0,
        FIRST + 48,
        [({"__name__": "m", "host": "h1", "Zone": "z"}, late, 77.0), ({"__name__": "m", "host": "new"}, late, 78.0)],
    )
    assert world.export(options) == [DayAction.EXPORT, DayAction.UNCHANGED]
    after = world.manifest(0)
    assert before is not None
    assert after is not None
    assert (before.revision, after.revision) == (1, 2)
    assert world.visible() == world.stored.expected(START, START + DAY, __name__="m")
    # A reader of the complete folder must not find samples twice.
    assert {path.name for path in world.day_folder().glob("*.parquet")} == {file.name for file in after.files}


def test_an_export_waits_for_a_full_disk_and_shows_nothing_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = filled(tmp_path)
    world.failures_allowed = 0
    world.export()
    before = world.visible()
    world.stored.write(0, FIRST + 40, scraped(FIRST, value=100.0))
    world.plan()
    with monkeypatch.context() as patched:
        patched.setattr(target, "file_system", lambda uri: (FullDisk(), uri))
        world.work()
        job = world.board.jobs()[-1]
        assert job.state is BulkJobState.RUNNING
        assert any("is full" in part.reason for part in world.board.parts(job))
    assert world.visible() == before
    assert world.work()
    assert world.board.jobs()[-1].state is BulkJobState.DONE
    assert world.visible() == world.stored.expected(START, START + DAY, __name__="m") != before


def test_a_late_write_to_a_group_without_matching_series_exports_nothing(tmp_path: Path) -> None:
    world = filled(tmp_path)
    world.export()
    rows = world.stored.write(0, FIRST + 24, [({"__name__": name}, START, 1.0) for name in "abcdefg"])
    manifest = world.manifest()
    assert manifest is not None
    touched = {row.group for row in rows if row.samples}
    (own,) = {row.group for row in manifest.rows}
    expected = DayAction.EXPORT if own in touched else DayAction.UNCHANGED
    assert len(touched) > 1
    assert world.export() == [expected]


@pytest.mark.parametrize("kind", FaultKind)
def test_a_crash_at_any_call_leaves_the_previous_day_or_the_complete_new_one(tmp_path: Path, kind: FaultKind) -> None:
    calls = 0
    while True:
        calls += 1
        folder = tmp_path / str(calls)
        folder.mkdir()
        world = ExportWorld(folder)
        world.stored.write(0, FIRST, scraped(FIRST, 3))
        options = world.options(part_samples=4)
        world.export(options)
        former = world.visible()
        world.stored.write(0, FIRST + 24, [({"__name__": "m", "host": "h1", "Zone": "z"}, START, 77.0)])
        expected = world.stored.expected(START, START + DAY, __name__="m")
        assert former != expected
        assert len(world.plan(options).parts) > 1
        fault = Fault(kind, calls)
        world.work(fault)
        assert world.visible() in (former, expected)
        if not fault.is_over:
            break
        assert world.work()
        assert world.visible() == expected
        assert len(list(world.day_folder().glob("*.parquet"))) == len(set(_names(world)))
        assert world.board.jobs()[-1].state is BulkJobState.DONE
    assert calls > 40


def _names(world: ExportWorld) -> list[str]:
    manifest = world.manifest()
    assert manifest is not None
    return [file.name for file in manifest.files]


def test_the_file_of_a_lost_worker_does_not_count(tmp_path: Path) -> None:
    world = filled(tmp_path)
    plan = world.plan()
    one, other = world.worker(), world.worker()
    # The first part is written by a worker that is lost before it can mark it as done.
    assert not world.work(Fault(FaultKind.CRASH_AFTER, 14))
    steps = 0
    while any([one.step(), other.step()]):
        steps += 1
    assert steps >= len(plan.parts) // 2
    world.work()
    assert world.visible() == world.stored.expected(START, START + DAY, __name__="m")
    assert len(list(world.day_folder().glob("*.parquet"))) == len(_names(world))


def test_the_file_of_a_worker_that_lost_its_lease_does_not_count(tmp_path: Path) -> None:
    world = filled(tmp_path, hours=2)
    world.plan(world.options(part_samples=1_000))
    # The worker is lost once its file is written, and another worker writes its own file.
    assert not world.work(LostAfterWritingItsFile(world.day_folder()))
    (lost,) = world.day_folder().glob("*.parquet")
    assert world.work()
    assert world.visible() == world.stored.expected(START, START + DAY, __name__="m")
    assert lost.name not in _names(world)
    assert not lost.exists()


def test_a_part_fails_with_the_name_of_a_pinned_row_that_has_expired(tmp_path: Path) -> None:
    world = ExportWorld(tmp_path, data_life=2 * DAY, failures_allowed=0)
    world.stored.write(0, FIRST, scraped(FIRST))
    world.plan()
    world.clock.sleep(2 * DAY / 1000)
    world.work()
    job = world.board.jobs()[0]
    assert world.visible() is None
    part = world.board.parts(job)[0]
    assert f"the samples of bucket {FIRST}, group" in part.reason
    assert "have expired" in part.reason
    with pytest.raises(PinnedRowExpired, match="have expired"):
        world.plan()


def test_a_day_is_not_replaced_once_one_of_its_rows_has_expired(tmp_path: Path) -> None:
    world = filled(tmp_path)
    world.export()
    before = world.visible()
    # The day's own rows are gone from the manifest; a later bucket adds another sample of the day.
    rows = world.server.shards[next(iter(world.server.shards))].groups
    for place in [place for place in rows if place[0] == FIRST]:
        del rows[place]
    world.stored.write(0, FIRST + 24, [({"__name__": "m", "host": "h1", "Zone": "z"}, START, 77.0)])
    assert world.export() == [DayAction.EXPIRED]
    assert world.visible() == before


def test_a_day_whose_rows_expire_while_it_is_exported_again_is_kept(tmp_path: Path) -> None:
    world = filled(tmp_path)
    world.export()
    before = world.visible()
    world.stored.write(0, FIRST + 24, [({"__name__": "m", "host": "h1", "Zone": "z"}, START, 77.0)])
    plan = world.plan()
    worker = world.worker()
    for _ in plan.parts:
        assert worker.step()
    rows = world.server.shards[next(iter(world.server.shards))].groups
    for place in [place for place in rows if place[0] == FIRST]:
        del rows[place]
    world.work()
    assert world.visible() == before
    assert len(list(world.day_folder().glob("*.parquet"))) == len(_names(world))


def test_the_first_of_two_exports_of_a_day_to_finish_is_kept(tmp_path: Path) -> None:
    world = filled(tmp_path)
    plan = world.plan()
    worker = world.worker()
    for _ in plan.parts:
        assert worker.step()
    slow = world.board.jobs()[0].job
    written = set(world.day_folder().glob(f"{slow}-*.parquet"))
    world.stored.write(0, FIRST + 24, [({"__name__": "m", "host": "h1", "Zone": "z"}, START, 77.0)])
    world.plan()
    other = world.board.jobs()[1].job
    while world.board.job(other).state is not BulkJobState.DONE:
        world.worker().run_until_done(other)
    expected = world.stored.expected(START, START + DAY, __name__="m")
    assert world.visible() == expected
    # Files of a job that still runs are left alone.
    assert written
    assert written <= set(world.day_folder().iterdir())
    assert world.work()
    assert world.board.job(slow).state is BulkJobState.DONE
    assert world.visible() == expected
    assert {path.name for path in world.day_folder().glob("*.parquet")} == set(_names(world))


def test_the_higher_shard_wins_where_partitions_were_added(tmp_path: Path) -> None:
    world = filled(tmp_path, hours=2)
    # The series continued in a shard that was added, and some samples were written to both.
    world.stored.begin(1)
    world.stored.write(1, FIRST + 1, [(labels, time, 1000 + value) for labels, time, value in scraped(FIRST + 1, 3)])
    world.stored.write(0, FIRST + 2, scraped(FIRST + 1, 3, value=500.0))
    world.export()
    expected = world.stored.expected(START, START + DAY, __name__="m")
    assert world.visible() == expected
    assert sum(value >= 1000 for _, _, value in expected) == 6


def test_the_later_of_duplicates_across_buckets_wins(tmp_path: Path) -> None:
    world = filled(tmp_path, hours=2)
    for later in (2, 3):
        world.stored.write(0, FIRST + later, scraped(FIRST, 4, value=100.0 * later))
    world.export()
    assert world.visible() == world.stored.expected(START, START + DAY, __name__="m")
    visible = world.visible()
    assert visible is not None
    assert sum(value >= 300 for _, _, value in visible) == 8


def test_a_bucket_whose_index_is_not_stored_yet_is_not_read(tmp_path: Path) -> None:
    world = filled(tmp_path, hours=2)
    before = world.stored.expected(START, START + DAY, __name__="m")
    late = [({"__name__": "m", "host": "unknown"}, START + 1, 1.0)]
    rows = world.stored.write(0, FIRST + 2, late)
    named = next(row for row in rows if row.index is not None)
    held = world.server.shards[next(iter(world.server.shards))].groups
    taken = held.pop((FIRST + 2, named.group))
    world.export()
    assert world.visible() == before
    held[FIRST + 2, named.group] = taken
    assert world.export() == [DayAction.EXPORT]
    assert world.visible() == world.stored.expected(START, START + DAY, __name__="m")


def test_a_day_without_samples_is_exported_once(tmp_path: Path) -> None:
    world = filled(tmp_path, hours=2)
    options = world.options("absent")
    assert world.export(options) == [DayAction.EXPORT]
    assert world.visible() == []
    assert world.export(options) == [DayAction.UNCHANGED]


def test_a_different_selector_or_a_shorter_time_range_is_refused(tmp_path: Path) -> None:
    world = filled(tmp_path, hours=2)
    world.export()
    with pytest.raises(ConflictingExport, match="holds an export of 'm'"):
        world.plan(world.options("other"))
    shorter = world.options()
    with pytest.raises(ConflictingExport, match="cut short"):
        world.plan(type(shorter)(shorter.to, shorter.selector, START + HOUR, START + DAY))


def test_ordinary_nan_and_stale_markers_are_exported_as_they_are_stored(tmp_path: Path) -> None:
    world = ExportWorld(tmp_path)
    bits = np.array([0x7FF0000000000002, 0x7FF8000000000001, 0x7FF0000000000000], dtype=np.uint64)
    values = bits.view(np.float64)
    labels = {"__name__": "m"}
    world.stored.write(0, FIRST, [(labels, START + at, values[at]) for at in range(3)])
    world.export()
    (name,) = _names(world)
    found = pq.ParquetFile(world.day_folder() / name).read().column("value").to_numpy()
    assert found.view(np.uint64).tolist() == bits.tolist()


def test_a_part_fails_with_the_name_of_its_removed_plan(tmp_path: Path) -> None:
    world = ExportWorld(tmp_path, failures_allowed=0)
    world.stored.write(0, FIRST, scraped(FIRST))
    plan = world.plan()
    for path in (tmp_path / "out" / plan.spec.plan).iterdir():
        path.unlink()
    world.work()
    assert "part of the plan of this export" in world.board.parts(world.board.jobs()[0])[0].reason


def test_an_import_of_an_exported_file_gives_the_exported_samples(tmp_path: Path) -> None:
    world = filled(tmp_path, hours=3)
    world.stored.write(0, FIRST + 3, [({"__name__": "m", "empty": "ü", "a": 'b"c'}, START, float("inf"))])
    world.export()
    files = [str(world.day_folder() / name) for name in _names(world)]
    plan = plan_import(files, ImportOptions(Format.PARQUET, {}))
    blocks: list[SampleBlock] = []
    for part in plan.parts:
        with chunks_of(part, plan.spec) as chunks:
            for chunk in chunks:
                assert not chunk.bad.counts
                blocks += [block for _, block in chunk.blocks]
    found = [(tuple(sorted(labels)), *sample) for labels, samples in samples_of(blocks).items() for sample in samples]
    expected = world.stored.expected(START, START + DAY, __name__="m")
    assert sorted(found) == sorted(
        (series, time, np.float64(value).view(np.uint64)) for series, time, value in expected
    )
