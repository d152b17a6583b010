"""Cassandra's files and commands."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.node.stack.cassandra import Cassandra, logging_configuration, node_configuration
from strandline.node.stack.errors import JarsMissing
from strandline.node.stack.options import StackOptions
from strandline.node.stack.ports import Ports
from strandline.node.stack.state import StateFolder
from support.stack import options

pytestmark = pytest.mark.unit

PORTS = Ports(cassandra=9042, cassandra_storage=7000)


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    for name in ("cassandra-all-5.0.9.jar", "cassandra-driver-core-3.12.1-shaded.jar", "jamm-0.4.0.jar"):
        (folder / name).touch()
    return folder


def cassandra(tmp_path: Path, jars: Path, stack_options: StackOptions | None = None) -> Cassandra:
    return Cassandra(
        StateFolder(tmp_path / "state"),
        PORTS,
        stack_options or options(tmp_path / "state"),
        program=Path("/jdk/bin/java"),
        jars=jars,
        clock=ManualClock(),
    )


def test_cassandra_listens_on_loopback_only(tmp_path: Path) -> None:
    configuration = node_configuration(PORTS, tmp_path)

    assert (configuration["listen_address"], configuration["storage_port"]) == ("127.0.0.1", 7000)
    assert (configuration["rpc_address"], configuration["native_transport_port"]) == ("127.0.0.1", 9042)


def test_all_data_is_in_its_folder(tmp_path: Path) -> None:
    configuration = node_configuration(PORTS, tmp_path / "cassandra")

    folders = [
        configuration["commitlog_directory"],
        configuration["saved_caches_directory"],
        configuration["hints_directory"],
    ]
    assert all(Path(str(folder)).is_relative_to(tmp_path / "cassandra") for folder in folders)
    assert configuration["data_file_directories"] == [str(tmp_path / "cassandra/data")]


def test_extra_configuration_wins(tmp_path: Path, jars: Path) -> None:
    extra = {"authenticator": {"class_name": "PasswordAuthenticator"}, "num_tokens": 4}
    server = cassandra(tmp_path, jars, options(tmp_path / "state", extra_cassandra_yaml=extra))

    configuration = json.loads(server.files()[tmp_path / "state/conf/cassandra/cassandra.yaml"])

    assert configuration["authenticator"] == {"class_name": "PasswordAuthenticator"}
    assert configuration["num_tokens"] == 4
    assert configuration["rpc_address"] == "127.0.0.1"


def test_jvm_gets_heap_agent_and_configuration(tmp_path: Path, jars: Path) -> None:
    server = cassandra(tmp_path, jars, options(tmp_path / "state", cassandra_heap="700m"))

    text = server.files()[tmp_path / "state/conf/cassandra/java.args"]

    assert '"-Xmx700m"\n' in text
    assert f'"-javaagent:{jars}/jamm-0.4.0.jar"\n' in text
    assert f'"-Dcassandra.config=file://{tmp_path}/state/conf/cassandra/cassandra.yaml"\n' in text
    assert "jmxremote" not in text


def test_an_idle_node_does_not_wake_up_hundreds_of_times_a_second_for_its_coarse_clock(
    tmp_path: Path, jars: Path
) -> None:
    (argument,) = [
        line for line in cassandra(tmp_path, jars)._jvm_arguments() if "approximate_time_precision_ms" in line
    ]
    assert int(argument.partition("=")[2]) >= 20


def test_version_is_that_of_the_server_jar(tmp_path: Path, jars: Path) -> None:
    assert cassandra(tmp_path, jars).version == "5.0.9"


def test_missing_jars_are_named(tmp_path: Path) -> None:
    with pytest.raises(JarsMissing, match=r"there is no Cassandra .* in /no/such/folder"):
        cassandra(tmp_path, Path("/no/such/folder"))


def test_log_is_bounded_and_quiet_in_a_folder_of_any_name() -> None:
    configuration = ET.fromstring(logging_configuration(Path("/a & b/<é>/cassandra.log")))  # noqa: S314 - written by ourselves

    appender = configuration.find("appender")
    assert appender is not None
    assert appender.findtext("file") == "/a & b/<é>/cassandra.log"
    assert appender.findtext("rollingPolicy/maxIndex") == "2"
    root = configuration.find("root")
    assert root is not None
    assert root.get("level") == "WARN"
