"""The shard's end of the link: its socket, and the lifetime of its threads."""

import os
import socket
import stat
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest

from strandline.node.query.answer_messages import answer_of
from strandline.node.query.answers import Answer, TermsAnswer
from strandline.node.query.frames import PREFIX, Message, encode_joined
from strandline.node.query.link_server import LinkServer, LinkUnusable
from strandline.node.query.link_socket import receive, wait_forever
from strandline.node.query.queries import Cancellation, QueryCancelled, QueryUnavailable
from strandline.node.query.shard_requests import ShardRequest
from strandline.node.shard.report import ShardReport
from strandline.node.shard.status import Phase
from support.links import CLOCK, REQUEST, REQUEST_FRAME, WAIT_S, Service, send_in_pieces

pytestmark = pytest.mark.unit

REPORT = encode_joined(Message("report", {}))


def connected(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(WAIT_S)
    connection.connect(str(path))
    return connection


def received(connection: socket.socket) -> Message:
    connection.setblocking(False)
    try:
        return receive(connection, wait_forever)
    finally:
        connection.settimeout(WAIT_S)


def answering_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "answering"]


@pytest.mark.usefixtures("server")
def test_a_report_is_answered_while_requests_are_running(service: Service, path: Path) -> None:
    service.answers = service.work_until_given_up
    with connected(path) as client, connected(path) as other:
        client.sendall(REQUEST_FRAME)
        assert service.begun.wait(WAIT_S)
        other.sendall(REPORT)
        report = ShardReport.from_json(received(other).columns[0].tobytes())
        assert (report.status.phase, report.status.fraction) == (Phase.REPLAYING, 0.5)
        assert report.process.pid == os.getpid()


@pytest.mark.usefixtures("server")
def test_a_thread_that_answers_requests_has_a_lower_priority_and_one_that_reports_does_not(
    service: Service, path: Path
) -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    priorities = dict[str, int]()
    answer = service.answers

    def answers(request: ShardRequest, cancellation: Cancellation) -> Answer:
        priorities["answering"] = priority()
        return answer(request, cancellation)

    service.answers = answers
    with connected(path) as client, connected(path) as supervisor:
        client.sendall(REQUEST_FRAME)
        assert answer_of(received(client)).warnings
        supervisor.sendall(REPORT)
        assert received(supervisor).kind == "report"
        numbers = {thread.native_id: thread for thread in answering_threads() if thread.native_id is not None}
        thread_priorities = sorted(os.getpriority(os.PRIO_PROCESS, number) for number in numbers)
    # Under `nice` the lowest priority may be reached.
    assert priorities["answering"] == min(19, priority() + 10)
    assert thread_priorities == [priority(), priorities["answering"]]


@pytest.mark.usefixtures("server")
def test_a_request_is_cancelled_when_its_connection_is_closed(service: Service, path: Path) -> None:
    service.answers = service.work_until_given_up
    with connected(path) as client:
        client.sendall(REQUEST_FRAME)
        assert service.begun.wait(WAIT_S)
    assert service.over.wait(WAIT_S)
    assert [type(error) for error in service.ended] == [QueryCancelled]


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    "invalid",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        PREFIX.pack(b"SLQ1", 1 << 25, 0),
        PREFIX.pack(b"SLQ1", 2, 1 << 25),
        PREFIX.pack(b"SLP1", 0, 8) + bytes(8),
        encode_joined(Message("what", {})).replace(b'"version":3', b'"version":2'),
        REQUEST_FRAME + b"\0",
    ],
)
def test_invalid_bytes_close_only_their_own_connection(path: Path, invalid: bytes) -> None:
    with connected(path) as other:
        other.sendall(REQUEST_FRAME)
        assert answer_of(received(other)).warnings
        with connected(path) as invalid_client:
            invalid_client.sendall(invalid)
            # A reset means that data was discarded unread.
            with suppress(ConnectionResetError):
                assert invalid_client.recv(10) == b""
        other.sendall(REQUEST_FRAME)
        assert answer_of(received(other)).warnings


@pytest.mark.usefixtures("server")
def test_a_message_that_is_not_a_request_is_answered_with_an_error(path: Path) -> None:
    with connected(path) as client:
        client.sendall(encode_joined(Message("edition", {})))
        assert received(client).kind == "error"
        client.sendall(REQUEST_FRAME)
        assert answer_of(received(client)).warnings


def test_connections_above_the_limit_are_refused_with_a_reason(service: Service, path: Path) -> None:
    with LinkServer(path, service, CLOCK, max_connections=1), connected(path) as client:
        client.sendall(REQUEST_FRAME)
        assert answer_of(received(client)).warnings
        with connected(path) as excess, pytest.raises(QueryUnavailable, match="as many connections"):
            answer_of(received(excess))


def test_closing_ends_threads_that_wait_for_a_request_or_its_rest(service: Service, path: Path) -> None:
    with LinkServer(path, service, CLOCK) as server, ExitStack() as stack:
        for begun in (b"", REQUEST_FRAME[:7], REQUEST_FRAME[:20]):
            connection = stack.enter_context(connected(path))
            # After an answer, the connection's thread exists and waits.
            connection.sendall(REQUEST_FRAME)
            assert connection.recv(1 << 16)
            connection.sendall(begun)
        assert len(answering_threads()) == 3
        server.close()
        assert answering_threads() == []
    assert not path.exists()


def test_closing_ends_a_thread_whose_answer_is_not_read(service: Service, path: Path) -> None:
    data = np.zeros(5_000_001, dtype=np.uint8)
    service.answers = lambda *_: TermsAnswer(np.array([0, len(data)]), data, np.array([7]), more=False)
    with LinkServer(path, service, CLOCK) as server, connected(path) as connection:
        connection.sendall(REQUEST_FRAME)
        # The first bytes have arrived, and the rest exceeds the kernel's buffers.
        assert connection.recv(1)
        server.close()
        assert answering_threads() == []


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("piece", [1, 7, 16, 17, 60])
def test_a_request_in_several_pieces_is_answered(path: Path, piece: int) -> None:
    with connected(path) as connection:
        send_in_pieces(connection, REQUEST_FRAME, piece)
        assert answer_of(received(connection)).warnings == (repr(REQUEST),)


def test_the_socket_is_private_to_its_user_and_replaces_a_stale_one(service: Service, path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    with LinkServer(path, service, CLOCK):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_path_that_can_not_be_a_socket_is_refused(service: Service, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    for path, reason in (
        (tmp_path / "file", "is not a socket"),
        (tmp_path / "nowhere" / "socket", "can't be created"),
        (tmp_path / ("long" * 30), "longer than"),
    ):
        with pytest.raises(LinkUnusable, match=reason):
            LinkServer(path, service, CLOCK)
    assert (tmp_path / "file").read_text() == "precious"
