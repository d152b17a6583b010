"""Imports in order: parts land one after the other despite crashes, and the last sample with a timestamp wins."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.jobs.importing.planning import ImportOptions
from strandline.jobs.importing.spec import Format
from strandline.jobs.transitions import resume
from strandline.store.bulk_jobs import BulkJobState
from strandline.store.jobs import JobState
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.record_headers import PART_HEADER
from support.bulk_worlds import Crash, Fault, FaultKind
from support.job_worlds import JobWorld

pytestmark = pytest.mark.simulation

MAPPING = {"metric": "cpu", "value": "value", "time": {"column": "time", "unit": "ms"}, "labels": ["host"]}
NOW = 1_800_000_000_000
ROWS, HOSTS = 40, 3
OPTIONS = ImportOptions(Format.CSV, MAPPING, part_bytes=250, chunk_bytes=80, max_record=60, ordered=True)
# The samples of all rows of a host have the same time: the last row wins.
TEXT = "\n".join(["time,host,value", *(f"{NOW},host-{row % HOSTS},{row}" for row in range(ROWS))]).encode()


def check_order(world: JobWorld) -> None:
    """Assert that parts follow each other in each partition, and that the last sample of each series is that of its
    last row.
    """
    newest: set[float] = set()
    for records in world.cluster.read().values():
        parts = [int(dict(record.headers)[PART_HEADER]) for record in records]
        assert parts == sorted(parts)
        columns = decode_batch([record.value for record in records], Limits())
        by_series: dict[object, float] = {}
        for value in columns.value.tolist():
            by_series[int(value) % HOSTS] = value
        newest.update(by_series.values())
    assert newest == {float(ROWS - HOSTS + host) for host in range(HOSTS)}


def check_done(world: JobWorld) -> None:
    assert world.board.job("job").state is BulkJobState.DONE
    assert set(world.samples().values()) == {1}
    assert sum(world.samples().values()) == ROWS
    check_order(world)


@pytest.mark.parametrize("width", [1, 3])
def test_a_crash_at_any_call_keeps_the_order(tmp_path: Path, width: int) -> None:
    calls = 0
    while True:
        calls += 1
        folder = tmp_path / str(calls)
        folder.mkdir()
        world = JobWorld(folder, width=width)
        assert len(world.planned(TEXT, OPTIONS).parts) >= 4
        fault = Fault(FaultKind.CRASH_AFTER, calls)
        world.work(fault)
        if not fault.is_over:
            break
        assert world.work()
        check_done(world)
    assert calls > 60


@pytest.mark.parametrize("call", ["hold", "send", "commit"])
def test_no_other_worker_takes_a_part_before_the_previous_part_is_done(tmp_path: Path, call: str) -> None:
    world = JobWorld(tmp_path)
    world.planned(TEXT, OPTIONS)
    other = world.worker()
    seen: list[list[JobState]] = []

    def other_worker_steps() -> None:
        other.step()
        seen.append([part.state for part in world.board.parts(world.board.job("job"))])

    worker = world.worker(stalls={call: other_worker_steps})
    while worker.step():
        pass
    assert seen
    for states in seen:
        assert states == sorted(states, key=[JobState.DONE, JobState.LEASED, JobState.PENDING].index)
        assert states.count(JobState.LEASED) <= 1
    check_done(world)


def test_a_zombie_whose_part_was_reassigned_lands_nothing_after_the_next_part(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(TEXT, OPTIONS)
    slow_clock = type(world.clock)(world.clock.now_ms())

    def taken_over() -> None:
        # Its machine is suspended for longer than its lease, and others do everything.
        other = world.worker()
        for _ in range(40):
            world.clock.sleep(20)
            other.step()
        assert world.board.job("job").state is BulkJobState.DONE

    zombie = world.worker(stalls={"send": taken_over}, clock=slow_clock)
    try:
        for _ in range(20):
            zombie.step()
    except Crash:
        pass
    check_done(world)


def test_a_part_that_fails_permanently_ends_the_job_and_a_resume_continues_in_order(tmp_path: Path) -> None:
    world = JobWorld(tmp_path, failures_allowed=0)
    plan = world.planned(TEXT, OPTIONS)
    file = world.folder / "job.txt"
    content, written = file.read_bytes(), file.stat().st_mtime_ns
    assert world.worker().step()
    file.write_bytes(content.replace(b"host-0", b"host-9"))
    world.work()
    job = world.board.job("job")
    assert (job.state, "part 1" in job.reason) == (BulkJobState.FAILED, True)
    states = [part.state for part in world.board.parts(job)]
    assert states == [JobState.DONE, JobState.FAILED, *[JobState.PENDING] * (len(plan.parts) - 2)]
    file.write_bytes(content)
    os.utime(file, ns=(written, written))
    for part in world.board.parts(job):
        if part.state is JobState.FAILED:
            world.board.replace(part, replace(part, state=JobState.PENDING, failures=0))
    world.board.change(job, lambda job: resume(job, NOW))
    world.work()
    check_done(world)
