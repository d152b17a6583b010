"""`python -m strandline.node.class_archiving NAME FILE`: starts Kafka or a Spark driver, and writes a CDS archive of
the classes that it has loaded. Set-up runs it.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from strandline.class_archives import KAFKA, RECORDING, SPARK
from strandline.node.bench.process_cpu import spark_drivers
from strandline.node.stack import Stack, StackOptions
from strandline.node.stack.stack import kafka_and_cassandra
from strandline.setup.installation import Installation
from strandline.spark.java_options import FAST_START, JAVA_OPTIONS
from strandline.spark.session import spark_session

_START_TIMEOUT = 300.0


def archive_kafka(file: Path) -> None:
    """Write the archive of a broker that has become healthy."""
    with tempfile.TemporaryDirectory() as folder:
        options = StackOptions(Path(folder), start_timeout=_START_TIMEOUT, record_kafka_classes=True)
        with Stack.start(options, build=lambda *parts: kafka_and_cassandra(*parts)[:1]) as stack:
            (process,) = (server.process for server in stack.record.servers if server.process)
            _write_archive(process.pid, file)


def archive_spark(file: Path) -> None:
    """Write the archive of a Spark driver after a query with a shuffle and Python tasks."""
    installed = Installation.load()
    properties = {"spark.master": "local[1]", JAVA_OPTIONS: " ".join((FAST_START, *RECORDING))}
    with spark_session("classes", properties, jars=installed.spark_jars, java_home=installed.java_home) as session:
        session.range(10).repartition(2, "id").mapInArrow(_unchanged, "id long").collect()
        (driver,) = spark_drivers()
        _write_archive(driver, file)


def _unchanged(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    yield from batches


def _write_archive(process: int, file: Path) -> None:
    jcmd = Installation.load().java_home / "bin" / "jcmd"
    subprocess.run([jcmd, str(process), "VM.cds", "dynamic_dump", file], stdout=subprocess.DEVNULL, check=True)


def main(name: str, file: str) -> int:
    """Write the archive of this name."""
    {KAFKA: archive_kafka, SPARK: archive_spark}[name](Path(file))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
