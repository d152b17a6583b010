"""Kafka's files and commands."""

from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.node.stack.errors import JarsMissing, StateFolderUnusable
from strandline.node.stack.kafka import Kafka, logging_properties, new_cluster_id, properties, server_properties
from strandline.node.stack.options import StackOptions
from strandline.node.stack.ports import Ports
from strandline.node.stack.state import StateFolder
from support.stack import options

pytestmark = pytest.mark.unit

PORTS = Ports(kafka=9092, kafka_controller=9093)


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    for name in ("kafka_2.13-4.3.1.jar", "kafka-clients-4.3.1.jar", "zstd-jni-1.5.6-10.jar"):
        (folder / name).touch()
    return folder


def kafka(tmp_path: Path, jars: Path, stack_options: StackOptions | None = None) -> Kafka:
    return Kafka(
        StateFolder(tmp_path / "state"),
        PORTS,
        stack_options or options(tmp_path / "state"),
        program=Path("/jdk/bin/java"),
        jars=jars,
        clock=ManualClock(),
    )


def test_broker_and_controller_listen_on_loopback_only(tmp_path: Path) -> None:
    listeners = server_properties(PORTS, tmp_path)["listeners"]

    assert listeners == "BROKER://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"


def test_topics_are_not_created_automatically(tmp_path: Path) -> None:
    assert server_properties(PORTS, tmp_path)["auto.create.topics.enable"] == "false"


def test_extra_properties_win(tmp_path: Path, jars: Path) -> None:
    stack_options = options(
        tmp_path / "state", extra_kafka_properties={"num.io.threads": "1", "sasl.enabled.mechanisms": "PLAIN"}
    )
    server = kafka(tmp_path, jars, stack_options)

    text = server.files()[tmp_path / "state/conf/kafka/server.properties"]

    assert "\nnum.io.threads=1\n" in text
    assert "\nsasl.enabled.mechanisms=PLAIN\n" in text
    assert text.count("num.io.threads") == 1


def test_values_are_escaped_as_java_reads_them() -> None:
    assert properties({"a b": " é\\x#", "jaas": 'user="x" password="=:"', "emoji": "🦆"}) == (
        'a\\ b=\\ \\u00e9\\\\x#\njaas=user="x" password="=:"\nemoji=\\ud83e\\udd86\n'
    )


def test_heap_and_jars_are_passed_to_the_jvm_in_a_file(tmp_path: Path, jars: Path) -> None:
    server = kafka(tmp_path, jars, options(tmp_path / "state", kafka_heap="300m"))

    text = server.files()[tmp_path / "state/conf/kafka/java.args"]

    assert '"-Xmx300m"\n' in text
    assert f"{jars}/kafka-clients-4.3.1.jar:{jars}/kafka_2.13-4.3.1.jar" in text
    assert server.command()[:3] == ["/jdk/bin/java", f"@{tmp_path}/state/conf/kafka/java.args", "kafka.Kafka"]


def test_version_is_that_of_the_broker_jar(tmp_path: Path, jars: Path) -> None:
    assert kafka(tmp_path, jars).version == "4.3.1"


def test_missing_jars_are_named(tmp_path: Path, jars: Path) -> None:
    (jars / "kafka_2.13-4.3.1.jar").unlink()

    with pytest.raises(JarsMissing, match=f"there is no Kafka .* in {jars}"):
        kafka(tmp_path, jars)


def test_new_storage_is_formatted_in_a_temporary_folder_and_then_renamed(tmp_path: Path, jars: Path) -> None:
    server = kafka(tmp_path, jars)
    aside = tmp_path / "state/tmp/kafka-storage"

    preparation = server.preparation()
    assert preparation is not None
    assert "kafka.tools.StorageTool" in preparation
    assert f"\nlog.dirs={aside}\n" in server.files()[Path(preparation[-1])]
    aside.mkdir(parents=True)
    (aside / "meta.properties").touch()
    server.finish_preparation()

    assert (tmp_path / "state/kafka/meta.properties").exists()
    assert server.preparation() is None


def test_half_formatted_storage_is_formatted_again(tmp_path: Path, jars: Path) -> None:
    aside = tmp_path / "state/tmp/kafka-storage"
    aside.mkdir(parents=True)
    (aside / "bootstrap.checkpoint").touch()

    assert kafka(tmp_path, jars).preparation() is not None
    assert not aside.exists()


def test_storage_that_lost_its_identity_is_not_formatted_over(tmp_path: Path, jars: Path) -> None:
    (tmp_path / "state/kafka/topic-0").mkdir(parents=True)

    with pytest.raises(StateFolderUnusable, match=r"has lost its meta.properties"):
        kafka(tmp_path, jars).preparation()

    assert (tmp_path / "state/kafka/topic-0").exists()


def test_log_is_bounded_and_quiet(tmp_path: Path) -> None:
    properties = logging_properties(tmp_path / "kafka.log")

    assert properties["rootLogger.level"] == "warn"
    assert properties["appender.file.type"] == "RollingFile"
    assert properties["appender.file.strategy.max"] == "2"


def test_cluster_ids_differ_and_are_no_options() -> None:
    ids = {new_cluster_id() for _ in range(500)}

    assert len(ids) == 500
    assert {len(text) for text in ids} == {22}
    assert not any(text.startswith("-") for text in ids)
