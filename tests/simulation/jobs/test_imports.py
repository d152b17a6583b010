"""Imports with crashes at every call to the store and to Kafka: each sample is in the topic once, and counted once."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.jobs.bad_records import MAX_EXAMPLES
from strandline.jobs.counts import Counts
from strandline.jobs.importing.planning import ImportOptions
from strandline.jobs.importing.spec import Format
from strandline.jobs.rate import changed_rate
from strandline.jobs.report import JobReport
from strandline.jobs.transitions import reopened, request_stop, resume
from strandline.kafka.errors import LogUnreachable
from strandline.node.bulk.changing import resume_job
from strandline.store.bulk_jobs import BulkJobState, Wanted
from strandline.store.jobs import JobState
from support.bulk_worlds import Fault, FaultKind
from support.job_worlds import JobWorld

pytestmark = pytest.mark.simulation

MAPPING = {"metric": "cpu", "value": "value", "time": {"column": "time", "unit": "ms"}, "labels": ["host"]}
NOW = 1_800_000_000_000
ROWS = 40
# Parts of about ten rows, in chunks of about three.
OPTIONS = ImportOptions(Format.CSV, MAPPING, part_bytes=250, chunk_bytes=80, max_record=60)


def text(rows: int = ROWS, bad_every: int = 9) -> bytes:
    lines = ["time,host,value"]
    for row in range(rows):
        value = "wrong" if row % bad_every == bad_every - 1 else str(row)
        lines.append(f"{NOW + row},host-{row % 5},{value}")
    return "\n".join(lines).encode()


def check_done(world: JobWorld, rows: int = ROWS, bad_every: int = 9) -> None:
    """Assert that everything has landed once, and is reported as landed."""
    bad = rows // bad_every
    samples = world.samples()
    assert set(samples.values()) == {1}
    assert sorted(time for _, time, _ in samples) == [
        NOW + row for row in range(rows) if row % bad_every != bad_every - 1
    ]
    job = world.board.job("job")
    assert (job.state, job.reason) == (BulkJobState.DONE, "")
    report = JobReport.from_json(job.report)
    assert (report.counts.records, report.counts.samples, report.counts.bad) == (rows, rows - bad, bad)
    assert report.counts.sent == len(list(world.records()))
    assert [line.record.line for line in report.bad_lines] == [
        1 + bad_every * (at + 1) for at in range(min(bad, MAX_EXAMPLES))
    ]
    assert sum(report.times.counts.values()) == rows - bad
    assert {part.state for part in world.board.parts(job)} == {JobState.DONE}


def test_an_undisturbed_import_lands_each_sample_once(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    plan = world.planned(text(), OPTIONS)
    assert len(plan.parts) >= 4
    assert world.work()
    check_done(world)
    assert max(chunk for (_, _, chunk), _ in world.records()) >= 2


def resumed_after_a_crash(folder: Path, rate: float | None) -> tuple[int, float]:
    """The number of samples that another worker lands after a crash, and how many seconds it takes."""
    folder.mkdir()
    world = JobWorld(folder)
    world.planned(text(), OPTIONS)
    if rate is not None:
        world.board.change(world.board.job("job"), lambda job: changed_rate(job, rate))
    assert not world.work(Fault(FaultKind.CRASH_AFTER, 40))
    landed, began = len(world.samples()), world.clock.monotonic()
    assert world.work()
    check_done(world)
    return len(world.samples()) - landed, world.clock.monotonic() - began


def test_a_worker_that_joins_after_a_crash_respects_the_job_s_rate(tmp_path: Path) -> None:
    # Without a rate, it only waits for the lease of the crashed worker.
    _, unlimited_s = resumed_after_a_crash(tmp_path / "unlimited", None)
    left, limited_s = resumed_after_a_crash(tmp_path / "limited", 0.1)
    assert left > 15
    # A burst of a second, and the last chunk.
    assert limited_s >= (left - 1 - 3) / 0.1 > unlimited_s


@pytest.mark.parametrize(("fails", "least_s", "most_s"), [(lambda n: n % 2 == 0, 0, 30), (lambda n: n <= 6, 63, 120)])
def test_a_failure_is_retried_soon_if_something_has_landed_since_the_previous_one(
    tmp_path: Path, fails: Callable[[int], bool], least_s: float, most_s: float
) -> None:
    world, calls, failed = JobWorld(tmp_path), 0, 0

    def pace(_samples: int, _check: Callable[[], None]) -> None:
        nonlocal calls, failed
        calls += 1
        if fails(calls):
            failed += 1
            raise LogUnreachable("the brokers do not answer")

    # One part of many chunks, because a finished part would also count as progress.
    world.planned(text(), replace(OPTIONS, part_bytes=10_000))
    began = world.clock.monotonic()
    world.worker(pace=pace).run_until_done()
    check_done(world)
    assert failed >= 6
    assert least_s <= world.clock.monotonic() - began <= most_s


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("kind", FaultKind)
def test_a_crash_at_any_call_loses_and_duplicates_nothing(tmp_path: Path, kind: FaultKind, width: int) -> None:
    """Also with a worker that leases several parts at a time, as a worker on Spark does."""
    calls = 0
    while True:
        calls += 1
        folder = tmp_path / str(calls)
        folder.mkdir()
        world = JobWorld(folder, width=width)
        world.planned(text(), OPTIONS)
        fault = Fault(kind, calls)
        world.work(fault)
        if not fault.is_over:
            break
        assert world.work()
        check_done(world)
    assert calls > 60


def test_workers_that_crash_repeatedly_make_progress(tmp_path: Path) -> None:
    """Each makes only some calls, so that parts are begun many times."""
    world = JobWorld(tmp_path, failures_allowed=1_000)
    world.planned(text(), OPTIONS)
    lives = 0
    while not world.work(Fault(FaultKind.CRASH_AFTER, 17)):
        lives += 1
        assert lives < 1_000
    assert lives > 5
    check_done(world)


def test_a_part_that_loses_every_worker_fails_and_stops_no_other(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    plan = world.planned(text(), OPTIONS)
    for _ in range(4):
        # After the lease of the first part, and before it has landed.
        assert not world.work(Fault(FaultKind.CRASH_BEFORE, 8))
    assert world.work()
    job = world.board.job("job")
    assert job.state is BulkJobState.FAILED
    assert job.reason.startswith(f"1 of {len(plan.parts)} parts failed; part 0: its worker was lost")
    # A resume retries it.
    for part in world.board.parts(job):
        if part.state is JobState.FAILED:
            world.board.replace(part, reopened(part))
    world.board.change(job, lambda job: resume(job, NOW))
    assert world.work()
    check_done(world)


def test_a_zombie_that_wakes_after_another_worker_took_its_part_lands_nothing(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)
    is_taken = False

    def stalls(_samples: int, _check: Callable[[], None]) -> None:
        """The worker is suspended between packing and landing, and another one does all the work."""
        nonlocal is_taken
        if not is_taken:
            is_taken = True
            world.dead.add("worker-0")
            assert world.work()

    zombie = world.worker(pace=stalls)
    zombie.step()
    check_done(world)
    assert not zombie.step()
    check_done(world)


def test_a_worker_that_waits_for_its_rate_gives_up_its_part_when_the_job_is_paused(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)

    def waits(_samples: int, check: Callable[[], None]) -> None:
        world.board.change(world.board.job("job"), lambda job: request_stop(job, Wanted.PAUSED, NOW))
        for _ in range(10):
            world.clock.sleep(1)
            check()
        raise AssertionError("it still waits")

    world.worker(pace=waits).step()
    assert {part.state for part in world.board.parts(world.board.job("job"))} == {JobState.PENDING}
    assert world.work()
    assert world.board.job("job").state is BulkJobState.PAUSED
    assert not world.samples()


def test_a_job_is_paused_once_nothing_can_land_and_a_resume_continues_it(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)
    world.work(Fault(FaultKind.CRASH_BEFORE, 60))
    landed = world.samples()
    assert 0 < len(landed) < ROWS
    job = world.board.change(world.board.job("job"), lambda job: request_stop(job, Wanted.PAUSED, NOW))
    assert world.work()
    job = world.board.job("job")
    assert job.state is BulkJobState.PAUSED
    assert world.samples() == landed
    assert world.work()
    assert world.samples() == landed
    world.board.change(job, lambda job: resume(job, NOW))
    assert world.work()
    check_done(world)


@pytest.mark.parametrize("call", ["hold", "committed", "begin", "send", "send_offset", "commit"])
@pytest.mark.parametrize("calls", range(1, 40, 5))
def test_a_zombie_that_wakes_after_a_cancellation_lands_nothing(tmp_path: Path, calls: int, call: str) -> None:
    """Its machine was suspended together with its monotonic clock, so it does not know that its lease has expired. The
    brokers refuse it, or, if it has fenced the others by then, it finds in the store that it lost the part.
    """
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)
    seen: list[int] = []

    def while_suspended() -> None:
        if not seen:
            world.dead.add("worker-0")
            world.board.change(world.board.job("job"), lambda job: request_stop(job, Wanted.CANCELLED, NOW))
            # Cancelled by workers of which the first crashes at some call.
            world.work(Fault(FaultKind.CRASH_AFTER, calls))
            world.work()
            assert world.board.job("job").state is BulkJobState.CANCELLED
            seen.append(sum(world.samples().values()))

    world.worker(stalls={call: while_suspended}, clock=ManualClock(NOW)).step()
    assert [sum(world.samples().values())] == seen


def test_a_job_is_cancelled_though_the_brokers_have_deleted_its_progress(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)
    world.work(Fault(FaultKind.CRASH_BEFORE, 60))
    landed = world.samples()
    world.clock.sleep(8 * 86_400)
    world.board.change(world.board.job("job"), lambda job: request_stop(job, Wanted.CANCELLED, NOW))
    assert world.work()
    assert world.board.job("job").state is BulkJobState.CANCELLED
    assert world.samples() == landed


def test_a_part_is_not_sent_again_once_the_brokers_may_have_deleted_its_progress(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)
    # After the lease of a part of which nothing has landed yet.
    world.work(Fault(FaultKind.CRASH_BEFORE, 8))
    world.clock.sleep(8 * 86_400)
    assert world.work()
    job = world.board.job("job")
    assert job.state is BulkJobState.FAILED
    assert "offsets.retention.minutes" in job.reason


@pytest.mark.parametrize(("bad_every", "state"), [(20, BulkJobState.DONE), (19, BulkJobState.BROKEN)])
def test_five_percent_of_bad_records_are_allowed_and_more_break_the_job(
    tmp_path: Path, bad_every: int, state: BulkJobState
) -> None:
    world = JobWorld(tmp_path)
    rows = 20 * 19 * 4
    world.planned(text(rows, bad_every), replace(OPTIONS, part_bytes=2_500))
    assert world.work()
    job = world.board.job("job")
    assert job.state is state
    if state is BulkJobState.BROKEN:
        assert "jobs.error_rate" in job.reason
        assert any(part.state is JobState.PENDING for part in world.board.parts(job))
        # Earlier bad records do not break it again.
        world.board.change(job, lambda job: resume(job, NOW))
        assert world.work()
        check_done(world, rows, bad_every)


@pytest.mark.parametrize("rows", [1_500, 300])
def test_a_broker_that_refuses_deliveries_breaks_the_job(tmp_path: Path, rows: int) -> None:
    """Immediately, or by the sum over several attempts at a part."""
    world = JobWorld(tmp_path)
    world.planned(text(rows, rows + 1), replace(OPTIONS, part_bytes=100_000, chunk_bytes=100_000))
    world.cluster.refuses_records = True
    assert world.work()
    job = world.board.job("job")
    assert job.state is BulkJobState.BROKEN
    assert "jobs.error_rate" in job.reason
    assert not world.samples()
    world.cluster.refuses_records = False
    resume_job(world.board, "job", world.clock)
    assert world.work()
    check_done(world, rows, rows + 1)


def test_a_file_that_changes_between_plan_and_run_is_refused_and_nothing_lands(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(text(), OPTIONS)
    (tmp_path / "job.txt").write_bytes(text(ROWS + 1))
    world.work()
    job = world.board.job("job")
    assert job.state is BulkJobState.FAILED
    assert "has changed since the job was planned" in job.reason
    assert not world.samples()
    (tmp_path / "job.txt").write_bytes(text())


def test_a_job_without_records_is_done(tmp_path: Path) -> None:
    world = JobWorld(tmp_path)
    world.planned(b"", OPTIONS)
    assert world.work()
    job = world.board.job("job")
    assert job.state is BulkJobState.DONE
    assert JobReport.from_json(job.report).counts == Counts()
