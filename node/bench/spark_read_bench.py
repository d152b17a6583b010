"""`strandline bench export --spark`: in addition to the export, measures reading the same samples with the Spark data
source.

Measures the CPU time of this process, of the session's JVM and of its Python processes, from `load` to the result of an
action that needs every row. As for exports, Cassandra is excluded.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from strandline.node.bench.process_cpu import spark_cpu_seconds
from strandline.node.settings.clients import spark_properties
from strandline.node.settings.sections import Settings
from strandline.recovery.periods import utc_text
from strandline.setup.installation import Installation
from strandline.spark.datasource import StrandlineDataSource
from strandline.spark.session import spark_session

# As in a notebook's session: a data source has separate Python processes for each step, and the daemon for replays
# would load all of its modules into each.
_SESSION = {"spark.python.daemon.module": "pyspark.daemon"}


@dataclass(frozen=True, slots=True)
class SparkRead:
    """The result of a read. `total` is the sum of the values."""

    samples: int
    total: float
    seconds: float
    cpu_seconds: float


@contextmanager
def source_session(settings: Settings) -> Iterator[SparkSession]:
    """A session with the data source, configured by the settings' `[spark]`. Raises `SparkUnavailable`."""
    installed = Installation.load()
    properties = {**_SESSION, **spark_properties(settings.spark)}
    with spark_session(
        "strandline bench", properties, jars=installed.spark_jars, java_home=installed.java_home
    ) as session:
        session.dataSource.register(StrandlineDataSource)
        yield session


def spark_read(session: SparkSession, config: Path, selector: str, start: int, end: int, **options: str) -> SparkRead:
    """Read the samples of a selector from `start` (inclusive) to `end` (exclusive), and sum them. Hours need not be
    ready. `options` are further options of the data source.
    """
    chosen = {
        "config": str(config),
        "match": selector,
        "start": utc_text(start).removesuffix("Z"),
        "end": utc_text(end).removesuffix("Z"),
        "not_ready": "true",
        **options,
    }
    began, cpu_began = time.perf_counter(), _cpu_seconds()
    frame = session.read.format("strandline").options(**chosen).load()
    (row,) = frame.selectExpr("count(labels) AS samples", "coalesce(sum(value), 0.0) AS total").collect()
    seconds, cpu_seconds = time.perf_counter() - began, _cpu_seconds() - cpu_began
    return SparkRead(row.samples, row.total, seconds, cpu_seconds)


def _cpu_seconds() -> float:
    return time.process_time() + spark_cpu_seconds()
