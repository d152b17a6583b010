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


def pass_check(_server: ServerRecord, _ports: Ports) -> None:
    """A check that passes."""


def fail_for_kafka(server: ServerRecord, _ports: Ports) -> None:
    if server.name == "kafka":
        raise Unhealthy("it coughs")


def text(reported: StackStatus) -> str:
    return "\n".join(str(block) for block in reports.StatusReport.of(reported).blocks())


def test_folder_without_a_stack_is_down(tmp_path: Path) -> None:
    reported = status.stack_status(StateFolder(tmp_path / "none"), clock=ManualClock(), check=pass_check)

    assert (reported.healthy, reported.state, reported.servers, reported.failure) == (False, "down", (), "")
    assert text(reported) == f"No stack runs in {tmp_path}/none."


def test_stack_is_healthy_if_both_servers_are(tmp_path: Path) -> None:
    with Stack.start(options(tmp_path), build=StandIns()) as stack:
        reported = status.stack_status(StateFolder(tmp_path), clock=SystemClock(), check=pass_check)

        assert (reported.healthy, reported.state) == (True, "up")
        kafka, cassandra = reported.servers
        assert (kafka.address, kafka.problem, kafka.version) == (stack.kafka_bootstrap, "", "1.2.3")
        assert cassandra.address == f"{stack.cassandra_host}:{stack.cassandra_port}"
        assert kafka.resident_bytes
        assert reported.uptime_seconds is not None
        assert "is healthy (up for 0 min" in text(reported)


def test_server_that_fails_its_check_makes_the_stack_unhealthy(tmp_path: Path) -> None:
    with Stack.start(options(tmp_path), build=StandIns()):
        reported = status.stack_status(StateFolder(tmp_path), clock=SystemClock(), check=fail_for_kafka)

    assert [server.healthy for server in reported.servers] == [False, True]
    assert not reported.healthy
    assert "kafka: it coughs" in text(reported)


def test_record_of_a_killed_keeper_is_ignored(tmp_path: Path) -> None:
    with Stack.start(options(tmp_path), build=StandIns()) as stack:
        record = stack.record
    StateFolder(tmp_path).write(record)

    reported = status.stack_status(StateFolder(tmp_path), clock=SystemClock(), check=pass_check)

    assert (reported.healthy, reported.state, reported.servers) == (False, "down", ())
    assert reported.failure == "its keeper was killed"


def test_ended_process_is_a_problem_whatever_answers_on_its_port(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    with Stack.start(options(tmp_path), build=StandIns()) as stack:
        record = stack.record
    with folder.lock():
        folder.write(record)
        reported = status.stack_status(folder, clock=SystemClock(), check=pass_check)

    assert [server.problem for server in reported.servers] == ["its process has ended"] * 2
    assert [server.pid for server in reported.servers] == [None, None]


def test_reason_of_the_last_end_is_shown(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Stack.start(options(tmp_path), build=StandIns()):
        raise ZeroDivisionError

    reported = status.stack_status(StateFolder(tmp_path), clock=SystemClock(), check=pass_check)

    assert "The last one ended: ZeroDivisionError" in text(reported)
