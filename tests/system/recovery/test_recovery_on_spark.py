"""Recovery of shards that were down for hours on the real stack: replays on Spark, killed at each phase."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from strandline.clock import SystemClock, wait_until
from strandline.errors import ExitCode
from strandline.node.stack import Stack
from strandline.recovery.replay.job_result import attempt_of
from strandline.spark.session import WORKER_DAEMON
from strandline.store.jobs import JobState
from support.deployment import HOUR, Deployment

pytestmark = pytest.mark.system


@pytest.fixture
def deployment(stack: Stack, tmp_path: Path) -> Iterator[Deployment]:
    deployed = Deployment(stack, tmp_path, partitions=2)
    with closing(deployed.store):
        yield deployed


def sums(deployment: Deployment, number: int) -> list[tuple[object, ...]]:
    """The manifest of a shard, without who wrote it, when and where."""
    manifest = deployment.store.manifest(deployment.shard(number))
    assert manifest is not None
    cuts = sorted((cut.bucket, cut.start, cut.end) for cut in manifest.cuts if not cut.reset)
    rows = sorted(
        (row.bucket, row.group, row.series, row.samples, row.least_time, row.greatest_time, row.late)
        for row in manifest.groups
    )
    return [*cuts, *rows]


def test_a_replay_on_spark_equals_direct_reading(deployment: Deployment) -> None:
    # The same in both partitions, except for records after the last complete bucket.
    for partition in range(2):
        deployment.produce_hours(5, records=30, series=200, partition=partition)
        deployment.put(partition, b"no record", deployment.this_hour - HOUR)
    deployment.produce(0, deployment.this_hour, range(300))
    deployment.flush()
    for shard, mode in enumerate(("spark", "direct")):
        code, report = deployment.command("recover", "run", "--shard", str(shard), "--mode", mode)
        (caught_up,) = report["shards"]
        assert (code, caught_up["error"]) == (ExitCode.OK, "")
        assert (caught_up["records"], caught_up["dead_letters"], caught_up["new_keys"]) == (151, 1, 200)
        deployment.check_stored(shard, before=deployment.this_hour)
    # The group depends on the metric, and the bucket on the record: nothing depends on the shard.
    assert sums(deployment, 0) == sums(deployment, 1)
    code, report = deployment.command("recover", "verify")
    assert code == ExitCode.OK, report
    process = deployment.start()
    try:
        status = process.wait_for("it is active", lambda status: status["phase"] == "active")
        assert status["keys"] == 300, "including those of the tail"
        assert status["counters"]["records"] == 1, "only the tail was left to read"
    finally:
        process.kill()


def descendants(pid: int) -> Iterator[tuple[int, str]]:
    """The descendants of a process that this test has started, with their command lines."""
    for child in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            parent = int((child / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid:
                yield int(child.name), (child / "cmdline").read_text().replace("\0", " ")
                yield from descendants(int(child.name))


def kill_one(below: int, named: str) -> None:
    """Kill the newest descendant of a process with these words in its command line."""
    clock = SystemClock()

    def found() -> list[int]:
        return [pid for pid, command in descendants(below) if named in command]

    assert wait_until(lambda: bool(found()), timeout=60, clock=clock), f"there is no {named} below {below}"
    os.kill(found()[-1], signal.SIGKILL)


def finished(deployment: Deployment) -> set[tuple[int, str]]:
    """The buckets that jobs have read so far, with their attempts: done, or already in the manifest."""
    jobs = deployment.store.jobs(deployment.shard())
    done = {(job.bucket, attempt_of(job)) for job in jobs if job.state is JobState.DONE}
    manifest = deployment.store.manifest(deployment.shard())
    rows = manifest.groups if manifest is not None else ()
    return done | {(row.bucket, row.attempt) for row in rows if row.samples}


def wait_for_buckets(deployment: Deployment, count: int) -> None:
    clock = SystemClock()
    assert wait_until(lambda: len(finished(deployment)) >= count, timeout=300, clock=clock, poll=0.1)


def test_the_next_start_completes_a_recovery_that_was_killed_at_any_phase(stack: Stack, tmp_path: Path) -> None:
    # One job per wave, so that a kill interrupts the replay.
    deployment = Deployment(stack, tmp_path, replay={"wave_records": 1})
    deployment.produce_hours(4, records=150, series=400)
    deployment.produce(0, deployment.this_hour, range(450))
    deployment.flush()
    with closing(deployment.store):
        process = deployment.start()
        try:
            wait_for_buckets(deployment, 1)
            kill_one(process.pid, WORKER_DAEMON)
            wait_for_buckets(deployment, 2)
            kill_one(process.pid, "recover work")
            wait_for_buckets(deployment, 3)
        finally:
            process.kill()
        before = finished(deployment)
        process = deployment.start()
        try:
            status = process.wait_for("it is active", lambda status: status["phase"] == "active", timeout=300)
            assert status["keys"] == 450
            assert before <= finished(deployment), "finished jobs do not run again"
            assert not deployment.store.jobs(deployment.shard())
        finally:
            process.kill()
        deployment.check_stored(before=deployment.this_hour)
        code, report = deployment.command("recover", "verify")
        assert code == ExitCode.OK, report
