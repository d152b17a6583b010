"""Spark sessions with this project's defaults: quiet, on loopback by default, with the jars of the Kafka source."""

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

# Spark redacts the values of options whose names match this in logs and pages. Its default pattern does not match the
# two options with a private key and a password for Kafka.
REDACTED = "(?i)secret|password|token|access[.]?key|jaas|keystore[.]key"

WORKER_DAEMON = "strandline.spark.worker_daemon"
"""The module from which executors fork their Python workers. By name, because importing it would load the workers'
modules here too.
"""

# How often a task may fail on a local master: as often as on a cluster. Spark's default for local masters is one
# failure, so a single killed Python process would end a replay.
TASK_FAILURES = 4


class SparkUnavailable(Fatal):
    """Spark could not be started."""


def session_properties(chosen: Mapping[str, str], jars: Path) -> dict[str, str]:
    """All properties of a session; `chosen` must have `spark.master`.

    Chosen properties override the defaults. Java options are added to ours.
    """
    found = sorted(jars.glob("*.jar"))
    if not found:
        raise SparkUnavailable(f"no jars of Spark's Kafka source were found in {jars}", remedy="Run `make setup`")
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
        # Otherwise the driver listens on the address that the host's name resolves to.
        properties |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    # Quoted, because Spark splits them at spaces, which a path may contain.
    classes = "".join(f'"{option}" ' for option in archive_options(SPARK))
    options = f"-Dlog4j2.configurationFile={LOGGING.as_uri()} {classes}{chosen.get(JAVA_OPTIONS, '')}".rstrip()
    fixed = {"spark.master": with_task_retries(chosen["spark.master"]), JAVA_OPTIONS: options}
    return properties | dict(chosen) | fixed


def with_task_retries(master: str, failures: int = TASK_FAILURES) -> str:
    """A local master that allows `failures` attempts per task. Other masters, and local ones that set a number of
    attempts, are returned unchanged.
    """
    found = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return f"local[{found[1] or 1},{failures}]" if found else master


@contextmanager
def spark_session(name: str, properties: Mapping[str, str], *, jars: Path, java_home: Path) -> Iterator[SparkSession]:
    """A session that ends with the block. A process can have only one at a time: a second one would share, and stop,
    the first. Raises `SparkUnavailable`, or `DiskFull` if the disk that Spark writes to is full.
    """
    if SparkSession.getActiveSession() is not None:
        raise SparkUnavailable("this process already has a Spark session", remedy="Stop that session first")
    # spark-submit reads these from the environment. Workers need an interpreter with our packages: this one, unless
    # executors have another, such as that of an archive.
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
        # A JVM that could not start reports the reason on stderr only.
        scratch = scratch_folder(properties)
        if is_nearly_full(scratch) or any(text in str(error) for text in NO_SPACE):
            raise DiskFull(scratch) from error
        raise SparkUnavailable(
            f"Spark can't be started with master {properties['spark.master']}: {reason_of(str(error))}",
            remedy="See Spark's output on stderr, and check [spark] in the settings",
        ) from error
    try:
        yield session
    finally:
        _stop(session)


def scratch_folder(properties: Mapping[str, str]) -> Path:
    """The first folder to which Spark's driver on this machine spills and shuffles."""
    chosen = os.environ.get("SPARK_LOCAL_DIRS") or properties.get("spark.local.dir") or tempfile.gettempdir()
    return Path(chosen.split(",")[0])


def _stop(session: SparkSession) -> None:
    """Stop a session. An error is only logged: if the JVM is gone, the session has ended, and the block's own exception
    must not be hidden.
    """
    try:
        session.stop()
    except (Py4JError, OSError) as error:
        _LOG.warning("could not stop the Spark session", error=str(error))


def _is_local(properties: Mapping[str, str]) -> bool:
    return properties["spark.master"].startswith("local")
