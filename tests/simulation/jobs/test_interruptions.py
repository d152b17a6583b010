"""Interruptions of imports by operators, brokers and files: the outcome is always the same."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.fs as pafs
import pytest

from strandline.clock import ManualClock
from strandline.jobs.importing.planning import ImportOptions
from strandline.jobs.importing.spec import Format
from strandline.jobs.report import JobReport
from strandline.jobs.sources import files
from strandline.jobs.transitions import request_stop
from strandline.node.bulk.changing import resume_job
from strandline.store.bulk_jobs import BulkJob, BulkJobState, Wanted
from strandline.store.jobs import JobState
from strandline.store.protocol import StoreUnavailable
from strandline.wire.decode import Limits, decode_batch
from support.bulk_worlds import Crash, Fault, FaultKind
from support.decoding import rows_of
from support.job_worlds import JobWorld
from support.seeded_jobs.model import Row
from support.seeded_jobs.running import JOBS
from support.seeded_jobs.simulation import HOSTS, START_MS, Simulation

pytestmark = pytest.mark.simulation

NOW = 1_800_000_000_000
MAPPING: dict[str, Any] = {
    "metric": "cpu",
    "value": "value",
    "time": {"column": "time", "unit": "ms"},
    "labels": ["host"],
}
ROWS = 30
OPTIONS = ImportOptions(Format.CSV, MAPPING, part_bytes=150, chunk_bytes=60, max_record=60)


def text(rows: int = ROWS) -> bytes:
    return "\n".join(["time,host,value", *(f"{NOW + row},host-{row % 5},{row}" for row in range(rows))]).encode()


def check_done(world: JobWorld, rows: int = ROWS) -> None:
    samples = world.samples()
    assert set(samples.values()) == {1}
    assert sorted(time for _, time, _ in samples) == [NOW + row for row in range(rows)]
    job = world.board.job("job")
    assert job.state is BulkJobState.DONE
    assert JobReport.from_json(job.report).counts.samples == rows


def state(world: JobWorld) -> BulkJobState:
    return world.board.job("job").state


LINES = [f"{row},{host},{row}" for row, host in enumerate(["häuser", "日本", '"x,y"', "f"])]
QUOTED = [f'{row},"h\n{row}",{row}' for row in range(4)]


@pytest.mark.parametrize(
    ("lines", "end", "last", "multiline"),
    [(LINES, "\n", "\n", False), (LINES, "\r\n", "\r\n", False), (LINES, "\n", "", False), (QUOTED, "\n", "", True)],
    ids=["LF", "CRLF", "no last newline", "quoted newlines"],
)
def test_parts_of_any_size_land_the_same_samples(
    tmp_path: Path, lines: list[str], end: str, last: str, multiline: bool
) -> None:
    content = (end.join(["time,host,value", *lines]) + last).encode()
    digests = set()
    for part_bytes in (1, 2, 3, 7, 50, len(content)):
        folder = tmp_path / str(part_bytes)
        folder.mkdir()
        world = JobWorld(folder)
        mapping = {**MAPPING, "multiline": multiline}
        plan = world.planned(content, ImportOptions(Format.CSV, mapping, part_bytes=part_bytes, max_record=60))
        assert len(plan.parts) >= (len(content) - 17) // part_bytes
        assert world.work()
        assert JobReport.from_json(world.board.job("job").report).counts.bad == 0
        rows = sorted(row[1:] for row in rows_of(decode_batch([value for _, value in world.records()], Limits())))
        assert len(rows) == len(lines)
        digests.add(hashlib.sha256(repr(rows).encode()).hexdigest())
    assert len(digests) == 1


def test_a_zombie_that_begins_its_part_after_the_job_is_done_lands_nothing(tmp_path: Path) -> None:
    """The brokers have deleted the part's progress by then, so only the store shows that the part is done."""
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)

    def while_suspended() -> None:
        if "worker-0" not in world.dead:
            world.dead.add("worker-0")
            assert world.work()
            check_done(world)

    world.worker(stalls={"hold": while_suspended}, clock=ManualClock(NOW)).step()
    assert "worker-0" in world.dead
    check_done(world)


def test_a_zombie_that_begins_its_part_after_another_worker_leased_it_lands_nothing(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)

    def while_suspended() -> None:
        if "worker-0" not in world.dead:
            world.dead.add("worker-0")
            # Another worker takes the part, and crashes before it begins it.
            other = world.worker(stalls={"hold": killed})
            with pytest.raises(Crash):
                other.step()

    def killed() -> None:
        raise Crash

    world.worker(stalls={"hold": while_suspended}, clock=ManualClock(NOW)).step()
    assert not world.samples()
    world.dead.add("worker-1")
    assert world.work()
    check_done(world)


def test_a_worker_that_takes_a_part_while_the_job_is_being_paused_lands_nothing(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)

    def paused_meanwhile() -> None:
        """The worker has read that the job runs, and takes a part. Nothing is leased in between, so the job pauses."""
        if state(world) is BulkJobState.RUNNING:
            world.board.change(world.board.job("job"), lambda job: request_stop(job, Wanted.PAUSED, NOW))
            assert world.work()
            assert state(world) is BulkJobState.PAUSED

    world.worker(store_stalls={"replace_bulk_part": paused_meanwhile}, clock=ManualClock(NOW)).step()
    assert state(world) is BulkJobState.PAUSED
    assert not world.samples()
    resume_job(world.board, "job", world.clock)
    assert world.work()
    check_done(world)


def test_a_part_is_fenced_once_for_each_lease_and_a_zombie_lands_nothing_after_it(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)
    fences: list[int] = []

    def paused() -> int:
        """The number of parts that are fenced for a pause."""
        before = world.calls["hold"]
        world.board.change(world.board.job("job"), lambda job: request_stop(job, Wanted.PAUSED, NOW))
        assert world.work()
        assert state(world) is BulkJobState.PAUSED
        return world.calls["hold"] - before

    def while_suspended() -> None:
        if not fences:
            world.dead.add("worker-0")
            fences.append(paused())
            resume_job(world.board, "job", world.clock)
            # No worker has leased it since.
            fences.append(paused())

    world.worker(stalls={"hold": while_suspended}, clock=ManualClock(NOW)).step()
    assert fences == [1, 0]
    assert not world.samples()
    resume_job(world.board, "job", world.clock)
    world.work(Fault(FaultKind.CRASH_BEFORE, 40))
    assert paused() == 1
    resume_job(world.board, "job", world.clock)
    assert world.work()
    check_done(world)


@pytest.mark.parametrize("kind", FaultKind)
def test_a_resume_that_ends_at_any_call_can_be_repeated(tmp_path: Path, kind: FaultKind) -> None:
    """With a job whose parts have failed: they are retried, and the job keeps its state."""
    calls = 0
    while True:
        calls += 1
        folder = tmp_path / str(calls)
        folder.mkdir()
        world = JobWorld(folder, failures_allowed=0)
        world.planned(text(), OPTIONS)
        world.cluster.refuses = True
        assert world.work()
        assert state(world) is BulkJobState.FAILED
        world.cluster.refuses = False
        fault = Fault(kind, calls)
        with suppress(Crash, StoreUnavailable):
            resume_job(world.operator(fault), "job", world.clock)
        if fault.is_over:
            # A worker runs, and then the operator repeats the resume.
            assert world.work()
            if state(world) is BulkJobState.FAILED:
                resume_job(world.operator(), "job", world.clock)
        assert world.work()
        check_done(world)
        if not fault.is_over:
            break
    assert calls > 5


def test_resuming_twice_runs_every_part_once(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)
    world.work(Fault(FaultKind.CRASH_BEFORE, 50))
    world.board.change(world.board.job("job"), lambda job: request_stop(job, Wanted.PAUSED, NOW))
    assert world.work()
    assert state(world) is BulkJobState.PAUSED
    first = resume_job(world.board, "job", world.clock)
    assert resume_job(world.board, "job", world.clock) == first
    assert world.work()
    check_done(world)


def test_a_worker_that_saw_parts_fail_does_not_fail_the_job_again_after_a_resume(tmp_path: Path) -> None:
    world = JobWorld(tmp_path, failures_allowed=0)
    world.planned(text(), OPTIONS)
    world.cluster.refuses = True
    has_resumed: list[bool] = []

    def resumed_meanwhile() -> None:
        """The worker is about to mark the job as failed. Another worker does so, and an operator resumes the job."""
        parts = world.board.parts(world.board.job("job"))
        if not has_resumed and {part.state for part in parts} == {JobState.FAILED}:
            has_resumed.append(True)
            assert world.work()
            assert state(world) is BulkJobState.FAILED
            resume_job(world.board, "job", world.clock)

    late = world.worker(store_stalls={"replace_bulk_job": resumed_meanwhile})
    while late.step():
        pass
    assert has_resumed
    assert state(world) is BulkJobState.RUNNING
    world.cluster.refuses = False
    assert world.work()
    check_done(world)


def test_eight_workers_that_find_the_last_part_done_complete_the_job_once() -> None:
    for seed in range(10):
        simulation = Simulation()
        simulation.random = Random(seed)  # noqa: S311
        with JOBS.simulations(), simulation.in_place():
            simulation.plan("job", [Row(START_MS + row, float(row), False) for row in range(8)], 60, 60)
            for number in range(8):
                simulation.start_worker(HOSTS[number % 2])
            simulation.scheduler.run(20_000)
            assert not simulation.scheduler.processes
        model = simulation.models["job"]
        assert model.completions == 1
        assert simulation.events["completing to done"] == 1
        assert simulation.landed("job")[0] == model.expected


def test_a_worker_that_seven_others_overtake_while_it_completes_a_job_changes_nothing(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)
    seen: list[BulkJob] = []

    def overtaken() -> None:
        """The worker has read that the job is completing, and is about to write that it is done."""
        if not seen and state(world) is BulkJobState.COMPLETING:
            others = [world.worker() for _ in range(7)]
            seen.append(world.board.job("job"))
            for other in others:
                while other.step():
                    pass
            seen.append(world.board.job("job"))

    late = world.worker(store_stalls={"replace_bulk_job": overtaken})
    while late.step():
        pass
    assert [job.state for job in seen] == [BulkJobState.COMPLETING, BulkJobState.DONE]
    assert world.board.job("job") == seen[-1]
    check_done(world)


def test_a_job_waits_while_kafka_is_unavailable_and_then_continues(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)
    world.cluster.reachable = False
    world.work(steps=10)
    job = world.board.job("job")
    assert job.state is BulkJobState.RUNNING
    reasons = {part.reason for part in world.board.parts(job)} - {""}
    assert any("unreachable" in reason for reason in reasons)
    assert {part.failures for part in world.board.parts(job)} == {0}
    world.cluster.reachable = True
    assert world.work()
    check_done(world)


def test_a_missing_kafka_permission_fails_the_job_and_is_named(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)
    world.cluster.refuses = True
    assert world.work()
    job = world.board.job("job")
    assert job.state is BulkJobState.FAILED
    assert "refuse requests" in job.reason
    assert not world.samples()
    world.cluster.refuses = False
    resume_job(world.board, "job", world.clock)
    assert world.work()
    check_done(world)


class FailingFiles:
    """The local file system, on which reading a file's attributes or opening it fails."""

    def __init__(self, error: OSError) -> None:
        self._error = error

    def get_file_info(self, path: str) -> pafs.FileInfo:
        return pafs.LocalFileSystem().get_file_info(path)

    def open_input_file(self, _path: str) -> None:
        raise self._error


def failing(error: OSError) -> Callable[[str], tuple[FailingFiles, str]]:
    return lambda uri: (FailingFiles(error), uri)


def test_a_file_that_is_no_longer_readable_fails_the_job_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)
    with monkeypatch.context() as patched:
        patched.setattr(files, "file_system", failing(PermissionError(13, "Permission denied")))
        assert world.work()
    job = world.board.job("job")
    assert job.state is BulkJobState.FAILED
    assert "no permission to read" in job.reason
    assert "job.txt" in job.reason
    assert not world.samples()
    resume_job(world.board, "job", world.clock)
    assert world.work()
    check_done(world)


def test_a_job_waits_for_a_disk_that_fails_or_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)
    with monkeypatch.context() as patched:
        patched.setattr(files, "file_system", failing(OSError(28, "No space left on device")))
        world.work(steps=10)
    job = world.board.job("job")
    assert job.state is BulkJobState.RUNNING
    assert any("No space left" in part.reason for part in world.board.parts(job))
    assert not world.samples()
    assert world.work()
    check_done(world)
