"""Replay jobs and bulk jobs on a Spark cluster: a master, a worker and executors in separate processes."""

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from strandline import class_archives
from strandline.jobs.transitions import request_stop
from strandline.node.stack.ports import LOOPBACK, free_ports
from strandline.node.tether import tethered
from strandline.setup.installation import Installation
from strandline.spark.executor_store import CassandraOpener
from strandline.spark.java_options import FAST_START, JAVA_OPTIONS
from strandline.spark.session import spark_session
from strandline.store.bulk_jobs import BulkJobState, Wanted
from strandline.store.jobs import JobState
from support.executor_imports import HangingImports, Imports, executors_of
from support.replay_openers import HangingOpener
from support.replayed_topic import Log, ReplayEnvironment, ancestors, jobs_of, run_in_memory, stored_in
from support.stack import STACK_TIMEOUT, eventually

pytestmark = pytest.mark.system

TESTS = Path(__file__).parents[2]
SPARK = Path(pyspark.__file__).parent
EXECUTORS = 2
# Masters, workers and executors have the driver's class path, so they can use its archive.
FAST_START_OPTIONS = " ".join((FAST_START, *class_archives.archive_options(class_archives.SPARK)))


@contextmanager
def part_of_cluster(name: str, log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A master or a worker, started like the cluster's scripts do."""
    command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    environ = os.environ | {"JAVA_HOME": str(Installation.load().java_home), "SPARK_DAEMON_MEMORY": "256m"}
    environ |= {"SPARK_DAEMON_JAVA_OPTS": FAST_START_OPTIONS}
    with log.open("wb") as said:
        process = subprocess.Popen(tethered(command), stdout=said, stderr=said, env=environ)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(STACK_TIMEOUT)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder, installed = tmp_path_factory.mktemp("cluster"), Installation.load()
    port, *pages = free_ports(3)
    master = f"spark://{LOOPBACK}:{port}"
    place = ("--host", LOOPBACK)
    with ExitStack() as running:
        running.enter_context(
            part_of_cluster(
                "master.Master", folder / "master.log", *place, "--port", str(port), "--webui-port", str(pages[0])
            )
        )
        assert eventually(lambda: is_listening(port)), (folder / "master.log").read_text()
        running.enter_context(
            part_of_cluster(
                "worker.Worker",
                folder / "worker.log",
                *place,
                *("--cores", str(EXECUTORS), "--memory", "2g", "--webui-port", str(pages[1])),
                *("--work-dir", str(folder / "work"), master),
            )
        )
        properties = {
            "spark.master": master,
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            JAVA_OPTIONS: FAST_START,
            "spark.executor.extraJavaOptions": FAST_START_OPTIONS,
            "spark.executorEnv.PYTHONPATH": str(TESTS),
            # Tasks that take longer than the fastest one are run twice.
            "spark.speculation": "true",
            "spark.speculation.interval": "20ms",
            "spark.speculation.multiplier": "1.01",
            "spark.speculation.quantile": "0.1",
            "spark.speculation.minTaskRuntime": "1ms",
        }
        yield running.enter_context(
            spark_session("tests", properties, jars=installed.spark_jars, java_home=installed.java_home)
        )


def executors(spark: SparkSession) -> int:
    """The number of executors."""
    java = spark.sparkContext._jsc
    assert java is not None
    return len(java.sc().statusTracker().getExecutorInfos()) - 1


def test_executors_in_their_own_processes_produce_the_same_bytes_as_the_in_memory_runner(
    spark: SparkSession, log: Log, places: ReplayEnvironment
) -> None:
    assert eventually(lambda: executors(spark) == EXECUTORS)
    jobs = jobs_of(log, "cluster")
    results = dict(places.runner(spark).run(jobs, lambda _: None))
    twins_store, twins_results = run_in_memory(log, places, jobs)
    assert results == twins_results
    assert stored_in(places.store, jobs) == stored_in(twins_store, jobs)


def kill_executor(marker: Path) -> list[int]:
    """Kill the executor of the Python process that writes its pid into a file. Returns the executor's pid."""
    assert eventually(marker.exists)
    killed = []
    for process in ancestors(int(marker.read_text())):
        command = Path(f"/proc/{process}/cmdline").read_bytes()
        if b"CoarseGrainedExecutorBackend" in command and command.startswith(b"/"):
            os.kill(process, signal.SIGKILL)
            killed.append(process)
    return killed


def test_other_executors_run_the_tasks_of_a_killed_executor(
    spark: SparkSession, log: Log, places: ReplayEnvironment, tmp_path: Path
) -> None:
    jobs = jobs_of(log, "executor killed")
    marker, killed = tmp_path / "worker", []

    def kill() -> None:
        killed.extend(kill_executor(marker))

    killer = threading.Thread(target=kill)
    killer.start()
    places.runner(spark, HangingOpener(CassandraOpener(places.connection), marker)).run(jobs, lambda _: None)
    killer.join(STACK_TIMEOUT)
    assert killed
    assert stored_in(places.store, jobs) == stored_in(run_in_memory(log, places, jobs)[0], jobs)


def test_an_import_on_a_cluster_produces_the_same_parts_report_and_records_as_in_process(
    spark: SparkSession, imports: Imports
) -> None:
    job = imports.planned("cluster")
    with executors_of(spark.sparkContext, imports.opener) as runner:
        imports.worker(runner).run_until_done(job.job)
    assert job.parts > 2 * EXECUTORS
    imports.check_same("cluster", "in-process")
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def test_a_part_whose_executor_is_killed_during_a_transaction_lands_once(
    spark: SparkSession, imports: Imports, tmp_path: Path
) -> None:
    job, marker, killed = imports.planned("killed"), tmp_path / "worker", list[int]()
    killer = threading.Thread(target=lambda: killed.extend(kill_executor(marker)))
    killer.start()
    opener = HangingImports(imports.topic.client, imports.topic.name, marker)
    with executors_of(spark.sparkContext, opener) as runner:
        imports.worker(runner).run_until_done(job.job)
    killer.join(STACK_TIMEOUT)
    assert len(killed) == 1
    assert imports.board.job("killed").state is BulkJobState.DONE
    assert imports.landed("killed") == imports.landed("in-process")
    assert [part.outcome for part in imports.rows("killed")] == [part.outcome for part in imports.rows("in-process")]
    # The part was begun again under another lease. No other part was affected, except one that waited for the executor.
    assert 1 <= sum(part.epoch - 1 for part in imports.rows("killed")) <= 2


def test_a_cancellation_completes_within_seconds_despite_a_hung_task_and_nothing_lands_afterwards(
    spark: SparkSession, imports: Imports, tmp_path: Path
) -> None:
    job, marker = imports.planned("cancelled"), tmp_path / "worker"
    clock = imports.board.clock
    took: list[float] = []

    def cancel() -> None:
        assert eventually(marker.exists)
        began = clock.monotonic()
        imports.board.change(
            imports.board.job(job.job), lambda job: request_stop(job, Wanted.CANCELLED, clock.now_ms())
        )
        assert eventually(lambda: imports.board.job(job.job).state is BulkJobState.CANCELLED)
        took.append(clock.monotonic() - began)

    operator = threading.Thread(target=cancel)
    operator.start()
    opener = HangingImports(imports.topic.client, imports.topic.name, marker)
    with executors_of(spark.sparkContext, opener) as runner:
        imports.worker(runner).run_until_done(job.job)
    operator.join(STACK_TIMEOUT)
    (seconds,) = took
    # The duration of the last grant, plus the fencing of some parts.
    assert seconds < 30
    assert JobState.LEASED not in {part.state for part in imports.rows(job.job)}
    landed = imports.landed(job.job)
    # Spark ends the hung process. Its open transaction was aborted when its part was fenced.
    assert eventually(lambda: not spark.sparkContext.statusTracker().getActiveJobsIds())
    assert imports.landed(job.job) == landed
    assert sum(imports.samples(job.job).values()) < sum(imports.samples("in-process").values())
