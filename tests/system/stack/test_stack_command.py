"""`strandline stack` with real servers, as an operator uses it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Cluster
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from strandline.class_archives import FOLDER
from strandline.clock import SystemClock
from strandline.errors import ExitCode
from strandline.node.stack import control
from strandline.node.stack.process import ProcessIdentity
from strandline.node.stack.state import StateFolder
from support.stack import eventually, gone

pytestmark = pytest.mark.system


class Operator:
    """An operator at a shell."""

    def __init__(self, folder: StateFolder) -> None:
        self.folder = folder
        self.environment = os.environ | {"STRANDLINE_STACK__STATE_DIR": str(folder.root)}

    def command(self, *arguments: str) -> list[str]:
        return [str(Path(sys.executable).with_name("strandline")), "stack", *arguments, "--output", "json"]

    def run(self, *arguments: str, **settings: str) -> tuple[int, dict[str, Any]]:
        """The exit code and the JSON document of a command."""
        ended = subprocess.run(
            self.command(*arguments),
            env=self.environment | settings,
            stdout=subprocess.PIPE,
            text=True,
            timeout=180,
            check=False,
        )
        return ended.returncode, json.loads(ended.stdout)

    def processes(self) -> list[ProcessIdentity]:
        """The keeper and the servers, according to the state file."""
        record = self.folder.read()
        if record is None:
            return []
        return [record.keeper, *(server.process for server in record.servers if server.process)]


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    """An operator, whose stack is stopped at the end."""
    folder = StateFolder(tmp_path / "state")
    yield Operator(folder)
    control.stop(folder, clock=SystemClock())


def write_data(addresses: dict[str, Any], name: str) -> None:
    """A topic with a record and a table with a row."""
    admin = AdminClient({"bootstrap.servers": addresses["kafka"]})
    admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1)])[name].result(90)
    producer = Producer({"bootstrap.servers": addresses["kafka"]})
    producer.produce(name, b"a record")
    assert producer.flush(90) == 0
    host, port = addresses["cassandra"].split(":")
    with Cluster([host], port=int(port), protocol_version=5) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE kept WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE kept.rows (id int PRIMARY KEY, body text)")
        session.execute("INSERT INTO kept.rows (id, body) VALUES (1, 'a row')")


def read_data(addresses: dict[str, Any], name: str) -> tuple[bytes | None, str]:
    """The remaining data."""
    consumer = Consumer({"bootstrap.servers": addresses["kafka"], "group.id": name})
    consumer.assign([TopicPartition(name, 0, 0)])
    message = consumer.poll(90)
    consumer.close()
    assert message is not None
    host, port = addresses["cassandra"].split(":")
    with Cluster([host], port=int(port), protocol_version=5) as cluster:
        row = cluster.connect().execute("SELECT body FROM kept.rows WHERE id = 1").one()
    return message.value(), row.body


def assert_quiet(folder: StateFolder) -> None:
    """Assert that the servers have logged little and no errors."""
    for server in ("kafka", "cassandra"):
        log = folder.log(server).read_text(encoding="utf-8")
        assert log
        assert len(log.splitlines()) < 100
        assert not re.search(r"\b(ERROR|FATAL)\b", log)


def test_data_and_addresses_survive_a_stop_and_a_kill_and_no_process_does(operator: Operator) -> None:
    name = f"kept-{uuid.uuid4()}"

    code, first = operator.run("up")
    assert (code, first["started"]) == (ExitCode.OK, True)
    code, status = operator.run("status")
    assert (code, status["healthy"]) == (ExitCode.OK, True)
    assert [server["healthy"] for server in status["servers"]] == [True, True]
    assert operator.run("up") == (ExitCode.OK, {**first, "started": False})
    write_data(first, name)
    assert read_data(first, name) == (b"a record", "a row")
    assert_quiet(operator.folder)
    running = operator.processes()
    assert len(running) == 3
    assert f"{FOLDER}/kafka.jsa" in Path(f"/proc/{running[1].pid}/maps").read_text(), "the archive of set-up is used"

    assert operator.run("down")[0] == ExitCode.OK
    assert all(gone(process) for process in running)
    assert operator.run("status")[0] == ExitCode.FAILED

    assert operator.run("up") == (ExitCode.OK, first)
    assert read_data(first, name) == (b"a record", "a row")
    running = operator.processes()
    os.kill(running[0].pid, signal.SIGKILL)
    assert eventually(lambda: all(gone(process) for process in running))
    code, status = operator.run("status")
    assert (code, status["failure"]) == (ExitCode.FAILED, "its keeper was killed")

    assert operator.run("up") == (ExitCode.OK, first)
    assert read_data(first, name) == (b"a record", "a row")
    running = operator.processes()
    os.kill(running[1].pid, signal.SIGKILL)
    assert eventually(lambda: all(gone(process) for process in running))
    code, status = operator.run("status")
    assert code == ExitCode.FAILED
    assert "Kafka was ended by SIGKILL" in status["failure"]

    code, wiped = operator.run("down", "--wipe", "--yes")
    assert code == ExitCode.OK
    assert str(operator.folder.root) in wiped["removed"]
    assert not operator.folder.root.exists()


def test_a_kill_of_the_command_during_its_start_leaves_no_process(operator: Operator) -> None:
    with subprocess.Popen(operator.command("up"), env=operator.environment, stderr=subprocess.DEVNULL) as up:
        assert eventually(lambda: len(operator.processes()) == 3)
        running = operator.processes()

        up.send_signal(signal.SIGKILL)
        up.wait()

    assert eventually(lambda: all(gone(process) for process in running))
    assert eventually(lambda: not operator.folder.is_held())


def test_a_port_in_use_is_reported_with_its_setting_and_process(operator: Operator) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        code, document = operator.run("up", STRANDLINE_STACK__KAFKA_PORT=str(port))

    assert code == ExitCode.FAILED
    assert document["error"]["type"] == "PortInUse"
    assert f"port {port} of 127.0.0.1 (stack.kafka_port) is in use by" in document["error"]["message"]
    assert f"(pid {os.getpid()})" in document["error"]["message"]
    assert len(operator.processes()) == 1
