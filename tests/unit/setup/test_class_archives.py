import io
import os
from pathlib import Path

import pytest

from strandline.class_archives import KAFKA, SPARK, archive_options
from strandline.node import class_archiving
from strandline.setup.build_context import BuildContext
from strandline.setup.cache import Cache
from strandline.setup.class_archives import ARCHIVING, provide_class_archives
from strandline.setup.progress import Progress

pytestmark = pytest.mark.unit

PYTHON = """#!/bin/sh
echo "$3" >> {written}
[ "$3" != "{failing}" ] && echo "classes" > "$4"
"""


class Checkout:
    """A checkout with Kafka's jars in the cache and Spark's in `.venv`, whose Python writes fake archives."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.written = folder, folder / "written"
        self.prefix = folder / ".venv"
        self.kafka_jar = folder / "kafka-jars" / "kafka.jar"
        self.spark_jar = self.prefix / "lib/python3.11/site-packages/pyspark/jars/spark.jar"
        for jar in (self.kafka_jar, self.spark_jar):
            jar.parent.mkdir(parents=True)
            jar.touch()
        self.output = io.StringIO()
        java_home = folder / "jdk"
        java_home.mkdir()
        (java_home / "release").write_text('JAVA_VERSION="17.0.1"\n')
        self.context = BuildContext(Cache(folder / "cache"), Progress(1, self.output), java_home, dict(os.environ))
        self.answer(failing="nothing")

    def answer(self, *, failing: str) -> None:
        python = self.prefix / "bin" / "python"
        python.parent.mkdir(exist_ok=True)
        python.write_text(PYTHON.format(written=self.written, failing=failing))
        python.chmod(0o700)

    def set_up(self) -> list[str]:
        """The names of the archives that were written again."""
        self.written.write_text("")
        provide_class_archives(self.context, self.folder, self.kafka_jar.parent)
        return self.written.read_text().split()

    def has_archive(self, name: str) -> bool:
        return bool(archive_options(name, self.prefix))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_a_jvm_uses_an_archive_once_set_up_has_written_one(checkout: Checkout) -> None:
    assert not checkout.has_archive(SPARK)
    assert checkout.set_up() == [KAFKA, SPARK]
    assert f"-XX:SharedArchiveFile={checkout.prefix}/strandline-classes/spark.jsa" in archive_options(
        SPARK, checkout.prefix
    )
    assert checkout.has_archive(KAFKA)
    assert class_archiving.__name__ == ARCHIVING


def test_archives_are_kept_until_a_jar_changes(checkout: Checkout) -> None:
    checkout.set_up()
    assert checkout.set_up() == []
    assert checkout.has_archive(KAFKA)
    # The JVM compares times as well.
    os.utime(checkout.spark_jar, (1, 1))
    assert checkout.set_up() == [SPARK]


def test_a_failed_archive_is_reported_and_jvms_start_without_it(checkout: Checkout) -> None:
    checkout.set_up()
    for jar in (checkout.kafka_jar, checkout.spark_jar):
        jar.write_text("another version")
    checkout.answer(failing=SPARK)
    assert checkout.set_up() == [KAFKA, SPARK]
    assert (checkout.has_archive(KAFKA), checkout.has_archive(SPARK)) == (True, False)
    assert "no archive of spark's classes" in checkout.output.getvalue()
