"""A repeated command continues an identical open job."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from strandline.clock import ManualClock
from strandline.jobs.board import BulkBoard
from strandline.jobs.control_sample import ControlSample
from strandline.jobs.exporting.planning import ExportOptions
from strandline.jobs.exporting.spec import ExportSpec
from strandline.jobs.importing.planning import plan_import
from strandline.jobs.importing.spec import Format
from strandline.jobs.rate import rate_of
from strandline.jobs.sending.spec import SendSpec
from strandline.jobs.transitions import begin, request_stop
from strandline.node.bulk.adding import PlannedJob, add_job
from strandline.node.bulk.exporting import open_export
from strandline.node.bulk.importing import import_options, planned_import
from strandline.node.bulk.open_jobs import JobIdle, open_job
from strandline.node.bulk.sending import PlannedSend
from strandline.node.settings import Settings
from strandline.store.bulk_jobs import BulkJob, BulkJobState, Wanted
from strandline.store.protocol import Store
from strandline.time_range import TimeRange
from support.memory_store import MemoryServer, MemoryStore

pytestmark = pytest.mark.unit

SETTINGS = Settings(dataset={"retention": "1d"})
MAPPING = {"metric": "cpu", "value": "value", "time": {"column": "time", "unit": "ms"}, "labels": ["host"]}
ENDED = (BulkJobState.DONE, BulkJobState.FAILED, BulkJobState.CANCELLED)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_800_000_000_000)


@pytest.fixture
def board(clock: ManualClock) -> BulkBoard:
    return BulkBoard(cast("Store", MemoryStore(MemoryServer(clock))), SETTINGS.dataset.name, clock)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text("time,host,value\n1,a,1\n")
    return path


def planned(file: Path, clock: ManualClock, **mapping: object) -> PlannedJob:
    """An import that is planned now. Its accepted times depend on the clock."""
    options = import_options(SETTINGS, Format.CSV, {**MAPPING, **mapping}, clock.now_ms())
    return planned_import(plan_import([str(file)], options))


def set_state(board: BulkBoard, job: BulkJob, state: BulkJobState) -> None:
    board.change(job, lambda open_one: replace(open_one, state=state, version=open_one.version + 1))


def test_a_repeated_import_is_continued(board: BulkBoard, clock: ManualClock, file: Path) -> None:
    assert open_job(board, planned(file, clock)) is None
    job = add_job(SETTINGS, board, planned(file, clock), clock)
    clock.sleep(3_600)
    repeated = planned(file, clock)
    assert repeated.plan_hash != job.plan_hash
    for state in (BulkJobState.PLANNED, BulkJobState.RUNNING, BulkJobState.COMPLETING):
        set_state(board, board.job(job.job), state)
        identical = open_job(board, repeated)
        assert identical is not None
        assert identical.job == job.job


def test_an_import_is_the_same_at_any_rate(board: BulkBoard, clock: ManualClock, file: Path) -> None:
    job = add_job(SETTINGS, board, planned(file, clock), clock, 500.0)
    assert rate_of(board.job(job.job)) == 500.0
    identical = open_job(board, planned(file, clock))
    assert identical is not None
    assert identical.job == job.job


@pytest.mark.parametrize("state", ENDED)
def test_an_ended_job_does_not_count(board: BulkBoard, clock: ManualClock, file: Path, state: BulkJobState) -> None:
    set_state(board, add_job(SETTINGS, board, planned(file, clock), clock), state)
    assert open_job(board, planned(file, clock)) is None


def test_a_job_that_is_being_cancelled_does_not_count(board: BulkBoard, clock: ManualClock, file: Path) -> None:
    job = add_job(SETTINGS, board, planned(file, clock), clock)
    board.change(
        board.change(job, lambda open_one: begin(open_one, 1)),
        lambda open_one: request_stop(open_one, Wanted.CANCELLED, 2),
    )
    assert open_job(board, planned(file, clock)) is None


@pytest.mark.parametrize("state", [BulkJobState.PAUSED, BulkJobState.BROKEN])
def test_a_job_that_is_paused_or_broken_is_named(
    board: BulkBoard, clock: ManualClock, file: Path, state: BulkJobState
) -> None:
    job = add_job(SETTINGS, board, planned(file, clock), clock)
    set_state(board, job, state)
    with pytest.raises(JobIdle, match=f"the identical job {job.job} is {state}.*--new") as refused:
        open_job(board, planned(file, clock))
    assert f"job resume {job.job}" in str(refused.value.remedy)


def test_another_mapping_or_file_is_another_job(board: BulkBoard, clock: ManualClock, file: Path) -> None:
    add_job(SETTINGS, board, planned(file, clock), clock)
    assert open_job(board, planned(file, clock, labels=[])) is None
    other = file.with_name("other.csv")
    other.write_bytes(file.read_bytes())
    assert open_job(board, planned(other, clock)) is None
    file.write_text("time,host,value\n1,a,2\n")
    assert open_job(board, planned(file, clock)) is None


def planned_send(at: int, **changes: object) -> PlannedSend:
    spec = SendSpec("up", "alerts", TimeRange(at - 300_000, at), {"value": "{host}"}, ControlSample(0.0))
    return PlannedSend(spec, 3, **changes)  # type: ignore[arg-type]


def test_a_send_job_without_an_explicit_time_is_continued(board: BulkBoard, clock: ManualClock) -> None:
    job = add_job(SETTINGS, board, planned_send(1_000_000).job(), clock)
    # There are more series now, so that the plan has more parts.
    identical = open_job(board, replace(planned_send(2_000_000), parts=5).job())
    assert identical is not None
    assert identical.job == job.job
    assert open_job(board, planned_send(2_000_000, is_at_fixed=True).job()) is None
    assert open_job(board, planned_send(1_000_000, is_at_fixed=True).job()) is not None
    assert open_job(board, planned_send(2_000_000, due_at=5).job()) is None


def exported(**changes: object) -> ExportSpec:
    chosen = {"to": "/out", "selector": "up", "start": 0, "end": 9, "plan": "_plans/1", "days": ("1970-01-01",)}
    return ExportSpec(dataset=SETTINGS.dataset.name, **{**chosen, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        (lambda open_one: open_one, True),
        (lambda open_one: replace(open_one, to="/other"), False),
        (lambda open_one: replace(open_one, selector="down"), False),
        (lambda open_one: replace(open_one, end=10), False),
    ],
)
def test_an_identical_export_is_continued(
    board: BulkBoard, clock: ManualClock, change: Callable[[ExportOptions], ExportOptions], is_same: bool
) -> None:
    add_job(SETTINGS, board, PlannedJob("export", exported().to_json(), "hash", ("{}",)), clock)
    assert (open_export(board, change(ExportOptions("/out", "up", 0, 9))) is not None) is is_same
