"""The status is the current state, and not the recorded one."""

from pathlib import Path

import pytest

from strandline.clock import ManualClock, SystemClock
from strandline.node.stack import reports, status
from strandline.node.stack.errors import Unhealthy
from strandline.node.stack.ports import Ports
from strandline.node.stack.record import ServerRecord
from strandline.node.stack.stack import Stack
from strandline.node.stack.state import StateFolder
from strandline.node.stack.status import StackStatus
from support.stack import StandIns, options

pytestmark = pytest.mark.unit


def well(_server: ServerRecord, _ports: Ports) -> None:
    """A check that passes."""


def kafka_is_ill(server: ServerRecord, _ports: Ports) -> None:
    if server.name == "kafka":
        raise Unhealthy("it coughs")


def text(found: StackStatus) -> str:
    return "\n".join(str(block) for block in reports.StatusReport.of(found).blocks())


def test_folder_without_a_stack_is_down(tmp_path: Path) -> None:
    found = status.stack_status(StateFolder(tmp_path / "none"), clock=ManualClock(), check=well)

    assert (found.healthy, found.state, found.servers, found.failure) == (False, "down", (), "")
    assert text(found) == f"No stack runs in {tmp_path}/none."


def test_stack_is_healthy_if_both_servers_are(tmp_path: Path) -> None:
    with Stack.start(options(tmp_path), build=StandIns()) as stack:
        found = status.stack_status(StateFolder(tmp_path), clock=SystemClock(), check=well)

        assert (found.healthy, found.state) == (True, "up")
        kafka, cassandra = found.servers
        assert (kafka.address, kafka.problem, kafka.version) == (stack.kafka_bootstrap, "", "1.2.3")
        assert cassandra.address == f"{stack.cassandra_host}:{stack.cassandra_port}"
        assert kafka.resident_bytes
        assert found.uptime_seconds is not None
        assert "is healthy (up for 0 min" in text(found)


def test_server_that_fails_its_check_makes_the_stack_unhealthy(tmp_path: Path) -> None:
    with Stack.start(options(tmp_path), build=StandIns()):
        found = status.stack_status(StateFolder(tmp_path), clock=SystemClock(), check=kafka_is_ill)

    assert [server.healthy for server in found.servers] == [False, True]
    assert not found.healthy
    assert "kafka: it coughs" in text(found)


def test_record_of_a_killed_keeper_is_ignored(tmp_path: Path) -> None:
    with Stack.start(options(tmp_path), build=StandIns()) as stack:
        record = stack.record
    StateFolder(tmp_path).write(record)

    found = status.stack_status(StateFolder(tmp_path), clock=SystemClock(), check=well)

    assert (found.healthy, found.state, found.servers) == (False, "down", ())
    assert found.failure == "its keeper was killed"


def test_ended_process_is_a_problem_whatever_answers_on_its_port(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    with Stack.start(options(tmp_path), build=StandIns()) as stack:
        record = stack.record
    with folder.lock():
        folder.write(record)
        found = status.stack_status(folder, clock=SystemClock(), check=well)

    assert [server.problem for server in found.servers] == ["its process has ended"] * 2
    assert [server.pid for server in found.servers] == [None, None]


def test_reason_of_the_last_end_is_shown(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Stack.start(options(tmp_path), build=StandIns()):
        raise ZeroDivisionError

    found = status.stack_status(StateFolder(tmp_path), clock=SystemClock(), check=well)

    assert "The last one ended: ZeroDivisionError" in text(found)
