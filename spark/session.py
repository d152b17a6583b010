"""A Spark session as this project uses one: quiet, on loopback unless told otherwise, with the Kafka source's jars."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import structlog
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from strandline.class_archives import SPARK, archive_options
from strandline.disk import NO_SPACE, DiskFull, is_nearly_full
from strandline.errors import Fatal
from strandline.spark.java_options import JAVA_OPTIONS
from strandline.spark.watching import reason_of

_LOG = structlog.get_logger(__name__)
LOOPBACK = "127.0.0.1"
LOGGING = Path(__file__).with_name("log4j2.properties").resolve()

# Spark hides the values of options whose names match this when it logs or shows them. Its own pattern does not know the
# two that hold a private key and a password for Kafka.
REDACTED = "(?i)secret|password|token|access[.]?key|jaas|keystore[.]key"

WORKER_DAEMON = "strandline.spark.worker_daemon"
"""What executors fork their Python workers from. By name: imported, it would load the workers' modules here, too."""

# How often a task may fail on a local master before all is given up: as often as on a cluster. By default it may not at
# all, and one killed Python process would end a replay.
TASK_FAILURES = 4


class SparkUnavailable(Fatal):
    """Spark could not be started."""


def session_properties(chosen: Mapping[str, str], jars: Path) -> dict[str, str]:
    """Every property that a session is made with; `spark.master` has to be chosen.

    What was chosen wins, and Java options are added to ours.
    """
    found = sorted(jars.glob("*.jar"))
    if not found:
        raise SparkUnavailable(f"there are no jars of Spark's Kafka source in {jars}", remedy="Run `make setup`")
    properties = {
        "spark.jars": ",".join(map(str, found)),
        "spark.redaction.regex": REDACTED,
        "spark.python.daemon.module": WORKER_DAEMON,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
    }
    if _is_local(chosen):
        # Without these the driver listens on whatever address the host's name resolves to.
        properties |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    # Quoted: Spark splits them at spaces, which a path may have.
    classes = "".join(f'"{option}" ' for option in archive_options(SPARK))
    options = f"-Dlog4j2.configurationFile={LOGGING.as_uri()} {classes}{chosen.get(JAVA_OPTIONS, '')}".rstrip()
    fixed = {"spark.master": forgiving_master(chosen["spark.master"]), JAVA_OPTIONS: options}
    return properties | dict(chosen) | fixed


def forgiving_master(master: str, failures: int = TASK_FAILURES) -> str:
    """A local master that runs a task so often before it has failed; any other one, and one that says how often, as it
    is.
    """
    found = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return f"local[{found[1] or 1},{failures}]" if found else master


@contextmanager
def spark_session(name: str, properties: Mapping[str, str], *, jars: Path, java_home: Path) -> Iterator[SparkSession]:
    """A session that ends with the block. A process has one at a time: a second one would share, and end, the first.
    Raises `SparkUnavailable`, or `DiskFull` if there is no room for what Spark writes.
    """
    if SparkSession.getActiveSession() is not None:
        raise SparkUnavailable("this process has a Spark session already", remedy="End that one first")
    # spark-submit reads these from the environment; the workers must be an interpreter that has our packages: this one,
    # unless executors have another, such as that of an archive.
    python = properties.get("spark.pyspark.python", sys.executable)
    os.environ |= {"JAVA_HOME": str(java_home), "PYSPARK_PYTHON": python}
    if _is_local(properties):
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    builder = SparkSession.builder.appName(name)
    for key, value in session_properties(properties, jars).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        # A JVM that could not start has said why on stderr only.
        scratch = scratch_folder(properties)
        if is_nearly_full(scratch) or any(text in str(error) for text in NO_SPACE):
            raise DiskFull(scratch) from error
        raise SparkUnavailable(
            f"Spark can't be started with master {properties['spark.master']}: {reason_of(str(error))}",
            remedy="What Spark wrote to stderr says more; check [spark] in the settings",
        ) from error
    try:
        yield session
    finally:
        _stop(session)


def scratch_folder(properties: Mapping[str, str]) -> Path:
    """The first folder that Spark's driver on this machine spills and shuffles to."""
    chosen = os.environ.get("SPARK_LOCAL_DIRS") or properties.get("spark.local.dir") or tempfile.gettempdir()
    return Path(chosen.split(",")[0])


def _stop(session: SparkSession) -> None:
    """End a session. One whose JVM is gone has ended; what the block raised must not be hidden by that."""
    try:
        session.stop()
    except (Py4JError, OSError) as error:
        _LOG.warning("the Spark session could not be ended", error=str(error))


def _is_local(properties: Mapping[str, str]) -> bool:
    return properties["spark.master"].startswith("local")
