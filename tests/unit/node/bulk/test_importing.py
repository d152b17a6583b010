"""Planning imports: mappings, times, expiry, and reports."""

from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.errors import ExitCode
from strandline.jobs.board import BulkBoard
from strandline.jobs.counts import Counts
from strandline.jobs.importing.estimating import ImportEstimate, estimate_import
from strandline.jobs.importing.planning import ImportPlan, plan_import
from strandline.jobs.importing.spec import Format
from strandline.jobs.outcome import PartOutcome
from strandline.node.bulk.adding import add_job
from strandline.node.bulk.changing import NotEnded, delete_job, resume_job
from strandline.node.bulk.import_reports import PlanReport
from strandline.node.bulk.importing import (
    ExpiryTooLong,
    MappingUnusable,
    NothingToImport,
    import_options,
    planned_import,
    preview,
    read_mapping,
    require_offset_retention,
)
from strandline.node.bulk.reports import JobList, JobStatus
from strandline.node.output import Table
from strandline.node.settings import Settings
from strandline.store.bulk_jobs import BulkJobState
from strandline.time_range import LATEST, TimeRange
from support.memory_store import MemoryServer, MemoryStore

pytestmark = pytest.mark.unit

NOW = 1_800_000_000_000
HOUR = 3_600_000
DAY = 24 * HOUR
SETTINGS = Settings(dataset={"retention": "1d"}, shard={"max_sample_ahead": "5m"})
MAPPING = 'metric = "cpu"\nvalue = "value"\ntime = {column = "time", unit = "ms"}\nlabels = ["host"]\n'


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def board(clock: ManualClock) -> BulkBoard:
    return BulkBoard(MemoryStore(MemoryServer(clock)), SETTINGS.dataset.name, clock)


@pytest.fixture
def plan(tmp_path: Path) -> ImportPlan:
    (tmp_path / "mapping.toml").write_text(MAPPING)
    (tmp_path / "data.csv").write_text(f"time,host,value\n{NOW},a,1.5\nnever,b,2\n{NOW + 1},c,3\n")
    mapping = read_mapping(tmp_path / "mapping.toml")
    return plan_import([str(tmp_path / "data.csv")], import_options(SETTINGS, Format.CSV, mapping, NOW))


def test_samples_that_shards_would_purge_or_drop_are_not_imported(plan: ImportPlan) -> None:
    assert (plan.spec.times.first, plan.spec.times.last) == (NOW - DAY, NOW + 5 * 60_000)


@pytest.mark.parametrize("content", [None, b"no = toml = at all", b"\xff\xfe"])
def test_an_unreadable_mapping_is_refused_by_name(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "mapping.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(MappingUnusable, match=r"mapping\.toml can't be read"):
        read_mapping(path)


def test_a_preview_shows_samples_and_bad_records(plan: ImportPlan) -> None:
    printed = preview(plan, 10)
    assert [(labels, time, value) for labels, time, value in printed.samples] == [
        ('{__name__="cpu", host="a"}', NOW, 1.5),
        ('{__name__="cpu", host="c"}', NOW + 1, 3.0),
    ]
    assert [line.record.line for line in printed.bad_lines] == [3], "the header is a line of the file"
    assert len(preview(plan, 1).samples) == 1
    assert printed.blocks()


def test_control_characters_of_a_bad_record_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(b"\x1b[2J\x07 {no json\n")
    printed = preview(plan_import([str(path)], import_options(SETTINGS, Format.JSONL, {}, NOW)), 3)
    assert printed.bad_lines[0].record.excerpt.startswith("\x1b")
    table = printed.blocks()[1]
    assert isinstance(table, Table)
    assert table.rows[0][-1] == r"\x1b[2J\x07 {no json"


def test_null_values_are_counted_in_the_plan_and_in_the_status_and_are_no_errors(
    tmp_path: Path, board: BulkBoard, clock: ManualClock
) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(f'{{"metric":{{"a":"b"}},"values":[1,null,null],"timestamps":[{NOW},{NOW - 1},{NOW - 2}]}}\n')
    plan = plan_import([str(path)], import_options(SETTINGS, Format.JSONL, {}, NOW))
    printed = [str(block) for block in PlanReport.of(plan, estimate_import(plan, clock)).blocks()]
    assert "In these pieces, 2 values are null: not imported, not errors." in printed
    job = add_job(SETTINGS, board, planned_import(plan), clock)
    done = replace(board.parts(job)[0], outcome=PartOutcome(Counts(records=1, samples=1), nulls=1).to_json())
    status = JobStatus.of(job, [done])
    assert "1 value is null: not imported, not errors." in status.blocks()
    assert "null" not in str(JobStatus.of(job, board.parts(job)).blocks())


def test_a_plan_names_files_sizes_and_parts(plan: ImportPlan) -> None:
    report = PlanReport.of(plan, estimate_import(plan, ManualClock()))
    assert (len(report.files), report.parts, report.bytes) == (1, 1, plan.parts[0].files[0].size)
    text = "\n".join(str(block) for block in report.blocks())
    assert "About 3 records with 2 samples, 1 bad records, estimated from 3 records in 1 pieces of the files" in text
    assert "Nothing was written" in text


def test_a_plan_without_a_limit_on_future_times_is_reported(plan: ImportPlan) -> None:
    unlimited = replace(plan, spec=replace(plan.spec, times=TimeRange(plan.spec.times.first, LATEST)))
    text = "\n".join(str(block) for block in PlanReport.of(unlimited, None).blocks())
    assert "Samples before 2027-01-14 08:00:00Z would be bad records." in text


def test_a_rate_bounds_how_fast_an_import_can_be(plan: ImportPlan) -> None:
    estimate = ImportEstimate(pieces=1, sampled=10, records=1000, samples=1000, bad_records=0, seconds=2.0)
    assert [PlanReport.of(plan, estimate, rate).seconds for rate in (None, 100.0, 10**6)] == [2.0, 10.0, 2.0]


def test_jobs_must_end_a_day_before_their_transactional_ids_expire() -> None:
    require_offset_retention(Settings(jobs={"expiry": "6d"}), 7 * DAY)
    with pytest.raises(ExpiryTooLong, match=r"jobs\.expiry is 6d.* 6 days .*offsets\.retention\.minutes") as caught:
        require_offset_retention(Settings(jobs={"expiry": "6d"}), 6 * DAY)
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_job_is_created_with_all_its_parts(board: BulkBoard, plan: ImportPlan, clock: ManualClock) -> None:
    job = add_job(SETTINGS, board, planned_import(plan), clock)
    assert job.job.startswith("20270115T080000Z-")
    assert board.job(job.job) == job
    assert [part.source for part in board.parts(job)] == [part.to_json() for part in plan.parts]
    status = JobStatus.of(job, board.parts(job))
    assert (status.state, status.parts, status.parts_done, status.exit_code) == (
        BulkJobState.PLANNED,
        1,
        0,
        ExitCode.OK,
    )
    assert JobList("metrics", (status,)).blocks()
    assert JobList("metrics", ()).blocks() == ["Dataset metrics has no jobs."]


def test_files_without_records_are_no_job(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    plan = plan_import([str(tmp_path / "empty.csv")], import_options(SETTINGS, Format.JSONL, {}, NOW))
    with pytest.raises(NothingToImport):
        planned_import(plan)


def test_only_ended_jobs_are_deleted(board: BulkBoard, plan: ImportPlan, clock: ManualClock) -> None:
    job = add_job(SETTINGS, board, planned_import(plan), clock)
    with pytest.raises(NotEnded, match="strandline job cancel"):
        delete_job(board, job.job)
    assert resume_job(board, job.job, clock).state is BulkJobState.PLANNED
