"""The protocol between `stack up` and its keeper."""

from pathlib import Path

import pytest

from strandline.errors import ExitCode
from strandline.node.stack.errors import DiskTooFull, ServerExited, StartCancelled
from strandline.node.stack.handshake import (
    Handshake,
    failure_from,
    failure_message,
    options_from,
    options_message,
    step_from,
    step_message,
)
from strandline.node.stack.options import CassandraClient
from strandline.node.stack.server import Phase
from strandline.node.stack.stack import StackStep
from support.stack import options

pytestmark = pytest.mark.unit


def test_messages_arrive_complete_and_in_order() -> None:
    near, far_socket = Handshake.pair()
    far = Handshake(far_socket)
    for number in range(3):
        near.send({"type": "step", "number": number, "text": "é\n" * 1000})

    assert [(far.receive() or {})["number"] for _ in range(3)] == [0, 1, 2]
    near.close()
    assert far.receive() is None
    far.close()


def test_connected_peer_is_not_reported_as_gone() -> None:
    near, far_socket = Handshake.pair()

    assert not near.is_peer_closed()
    far_socket.close()
    assert near.is_peer_closed()
    near.close()


def test_sending_to_a_closed_end_is_no_error_and_receiving_returns_none() -> None:
    near, far_socket = Handshake.pair()
    far_socket.close()

    near.send({"type": "up"})

    assert near.receive() is None
    near.close()


def test_half_closed_end_still_receives() -> None:
    near, far_socket = Handshake.pair()
    far = Handshake(far_socket)

    near.shut_down_sending()

    assert far.is_peer_closed()
    far.send({"type": "failed"})
    assert near.receive() == {"type": "failed"}
    near.close()
    far.close()


def test_incomplete_message_is_ignored() -> None:
    near, far_socket = Handshake.pair()
    far_socket.sendall(b'{"type": "up"}')
    far_socket.close()

    assert near.receive() is None
    near.close()


def test_options_are_transferred_unchanged(tmp_path: Path) -> None:
    sent_options = options(
        tmp_path,
        kafka_port=9092,
        java_home=tmp_path / "jdk",
        extra_kafka_properties={"a": "b"},
        extra_cassandra_yaml={"authenticator": {"class_name": "PasswordAuthenticator"}},
        cassandra_client=CassandraClient(login=("user", "word"), ca=tmp_path / "ca", key=tmp_path / "key"),
        optimise=True,
    )

    assert options_from(options_message(sent_options)) == sent_options
    assert options_from(options_message(options(tmp_path))) == options(tmp_path)


def test_steps_are_transferred_unchanged() -> None:
    step = StackStep("kafka", "Kafka", Phase.HEALTHY, 4.25)

    assert step_from(step_message(step)) == step


def test_error_is_raised_again_unchanged() -> None:
    error = ServerExited(
        "Kafka ended", remedy="Do this", server="kafka", cause="full", log=Path("/log"), lines=["last line"]
    )

    received = failure_from(failure_message(error))

    assert (received.message, received.remedy, received.exit_code) == ("Kafka ended", "Do this", ExitCode.FAILED)
    assert list(received.blocks()) == list(error.blocks())
    assert received.details() == {
        "server": "kafka",
        "cause": "full",
        "log": "/log",
        "log_lines": ["last line"],
        "type": "ServerExited",
    }


@pytest.mark.parametrize(
    ("error", "code"), [(DiskTooFull("full"), ExitCode.FAILED), (StartCancelled("stop"), ExitCode.INTERRUPTED)]
)
def test_exit_code_is_passed_on(error: DiskTooFull | StartCancelled, code: ExitCode) -> None:
    assert failure_from(failure_message(error)).exit_code == code
