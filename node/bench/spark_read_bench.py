"""What `strandline bench export --spark` measures beside an export: the same samples, read by the Spark data source.

What counts is the CPU time of this process, of the session's JVM and of its Python processes, from `load` to the result
of an action that needs every row; Cassandra is left out, as for exports.
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

# As in a notebook's session: a data source has Python processes of its own for each step, and the daemon of replays
# would load all of its modules into each.
_SESSION = {"spark.python.daemon.module": "pyspark.daemon"}


@dataclass(frozen=True, slots=True)
class SparkRead:
    """What a read took. `total` is the sum of the values."""

    samples: int
    total: float
    seconds: float
    cpu_seconds: float


@contextmanager
def source_session(settings: Settings) -> Iterator[SparkSession]:
    """A session that knows the data source, as the settings' `[spark]` says. Raises `SparkUnavailable`."""
    installed = Installation.load()
    properties = {**_SESSION, **spark_properties(settings.spark)}
    with spark_session(
        "strandline bench", properties, jars=installed.spark_jars, java_home=installed.java_home
    ) as session:
        session.dataSource.register(StrandlineDataSource)
        yield session


def spark_read(session: SparkSession, config: Path, selector: str, start: int, end: int, **options: str) -> SparkRead:
    """Read the samples of a selector from `start` to before `end`, and add them up. Hours need not be ready. `options`
    are more of the data source's.
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
