"""A Spark session for bulk jobs, put together from the settings."""

from collections.abc import Iterator
from contextlib import contextmanager

from strandline.clock import Clock
from strandline.node.bulk.opening import kind_openers
from strandline.node.settings.clients import spark_properties
from strandline.node.settings.sections import Settings
from strandline.setup.installation import Installation
from strandline.spark.part_listener import PartListener
from strandline.spark.part_runner import SparkLauncher, SparkPartRunner
from strandline.spark.session import forgiving_master, spark_session


@contextmanager
def spark_runner(settings: Settings, clock: Clock) -> Iterator[SparkPartRunner]:
    """Runs parts on Spark while the block lasts. A process has one session at a time."""
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
        with PartListener(host, settings.jobs.driver_port, bind=bind) as listener:
            yield SparkPartRunner(SparkLauncher(context), listener, kind_openers(settings), clock)


def job_properties(settings: Settings) -> dict[str, str]:
    """Those of replays, but a task is run once: another try at a part is another lease."""
    properties = spark_properties(settings.spark)
    once = {"spark.task.maxFailures": "1", "spark.speculation": "false"}
    return {**properties, **once, "spark.master": forgiving_master(settings.spark.master, failures=1)}
