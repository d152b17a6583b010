"""Builds a Spark session for bulk jobs from the settings."""

from collections.abc import Iterator
from contextlib import contextmanager

from strandline.clock import Clock
from strandline.node.bulk.opening import kind_openers
from strandline.node.settings.clients import spark_properties
from strandline.node.settings.sections import Settings
from strandline.setup.installation import Installation
from strandline.spark.part_listener import PartListener
from strandline.spark.part_runner import SparkLauncher, SparkPartRunner
from strandline.spark.session import SparkUnavailable, spark_session, with_task_retries


@contextmanager
def spark_runner(settings: Settings, clock: Clock) -> Iterator[SparkPartRunner]:
    """A runner of parts on Spark, for the duration of the block. A process has one session at a time. Raises
    `SparkUnavailable` and other errors of the start.
    """
    installed = Installation.load()
    with spark_session(
        f"strandline jobs of {settings.dataset.name}",
        job_properties(settings),
        jars=installed.spark_jars,
        java_home=installed.java_home,
    ) as session:
        context = session.sparkContext
        host = context.getConf().get("spark.driver.host") or ""
        bind = context.getConf().get("spark.driver.bindAddress") or host
        with _listening(host, settings.jobs.driver_port, bind) as listener:
            yield SparkPartRunner(SparkLauncher(context), listener, kind_openers(settings), clock)


def _listening(host: str, port: int, bind: str) -> PartListener:
    try:
        return PartListener(host, port, bind=bind)
    except OSError as error:
        raise SparkUnavailable(
            f"can't listen for executors at {bind}, port {port}: {error.strerror or error}",
            remedy="Set jobs.driver_port to a free port, or to 0 for any",
        ) from error


def job_properties(settings: Settings) -> dict[str, str]:
    """The properties of replays, except that tasks are not retried: a retry of a part needs a new lease."""
    properties = spark_properties(settings.spark)
    once = {"spark.task.maxFailures": "1", "spark.speculation": "false"}
    return {**properties, **once, "spark.master": with_task_retries(settings.spark.master, failures=1)}
