"""The link between the front and a shard's process: what it brings over, and what happens when one side goes away."""

import fcntl
import os
import socket
import stat
import termios
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest

from strandline.node.query.answers import Answer, BucketsAnswer, TermsAnswer
from strandline.node.query.asks import LabelValuesAsk
from strandline.node.query.frames import PREFIX, Message, encode
from strandline.node.query.link_client import LinkClient
from strandline.node.query.link_server import LinkServer, LinkUnusable
from strandline.node.query.link_socket import receive, wait_for_ever
from strandline.node.query.messages import QueryFailed, answer_message, answer_of, ask_message
from strandline.node.query.queries import (
    QueryCancelled,
    QueryTimedOut,
    QueryTooLarge,
    QueryUnavailable,
)
from strandline.node.shard.status import Phase
from support.links import ASK, CLOCK, WAIT_S, Service, give

pytestmark = pytest.mark.unit


@pytest.mark.usefixtures("server")
def test_each_of_many_threads_gets_the_answer_to_its_own_question(client: LinkClient) -> None:
    def ask(number: int) -> bool:
        asked = LabelValuesAsk(f"label {number}", (), None, number)
        return client.ask(asked, give()).warnings == (repr(asked),)

    with ThreadPoolExecutor(12) as threads:
        assert all(threads.map(ask, range(200)))


@pytest.mark.usefixtures("server")
def test_an_answer_that_is_larger_than_any_buffer_arrives_whole(service: Service, client: LinkClient) -> None:
    data = np.random.default_rng(1).integers(0, 256, 5_000_001, dtype=np.uint8)
    offsets = np.array([0, len(data)])
    service.answers = lambda *_: TermsAnswer(offsets, data, np.array([7]), more=False)
    first, second = client.begin(ASK, give()), client.begin(ASK, give())
    for asked in (second, first):
        answer = asked.answer()
        assert isinstance(answer, TermsAnswer)
        assert (answer.data == data).all()


@pytest.mark.usefixtures("server")
def test_errors_are_raised_here_and_the_link_goes_on(service: Service, client: LinkClient) -> None:
    def too_large(*_: object) -> Answer:
        raise QueryTooLarge("far too much", remedy="Ask for less")

    def surprised(*_: object) -> Answer:
        raise ZeroDivisionError("a secret")

    service.answers = too_large
    with pytest.raises(QueryTooLarge, match=r"far too much\. Ask for less"):
        client.ask(ASK, give())
    service.answers = surprised
    with pytest.raises(QueryFailed, match="ZeroDivisionError") as caught:
        client.ask(ASK, give())
    assert "secret" not in str(caught.value)
    service.answers = lambda *_: BucketsAnswer((), ("fine",))
    assert client.ask(ASK, give()).warnings == ("fine",)


@pytest.mark.usefixtures("server")
def test_a_question_that_is_given_up_ends_on_both_sides(service: Service, client: LinkClient) -> None:
    service.answers = service.work_until_given_up
    cancellation = give(600.0)
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(client.ask, ASK, cancellation)
        assert service.begun.wait(WAIT_S)
        cancellation.cancel()
        with pytest.raises(QueryCancelled):
            asking.result(WAIT_S)
    assert service.over.wait(WAIT_S)
    assert [type(error) for error in service.ended] == [QueryCancelled]


@pytest.mark.usefixtures("server")
def test_a_question_that_takes_too_long_ends_on_both_sides(service: Service, client: LinkClient) -> None:
    service.answers = service.work_until_given_up
    with pytest.raises(QueryTimedOut):
        client.ask(ASK, give(0.1))
    assert service.over.wait(WAIT_S)


@pytest.mark.usefixtures("server")
def test_an_abandoned_question_is_given_up_by_the_shard(service: Service, client: LinkClient) -> None:
    service.answers = service.work_until_given_up
    asked = client.begin(ASK, give(600.0))
    assert service.begun.wait(WAIT_S)
    asked.abandon()
    assert service.over.wait(WAIT_S)
    assert [type(error) for error in service.ended] == [QueryCancelled]


@pytest.mark.usefixtures("server")
def test_a_report_comes_while_questions_are_worked_on(service: Service, client: LinkClient) -> None:
    service.answers = service.work_until_given_up
    asked = client.begin(ASK, give(600.0))
    assert service.begun.wait(WAIT_S)
    report = client.report(WAIT_S)
    assert (report.status.phase, report.status.fraction) == (Phase.REPLAYING, 0.5)
    assert report.process.pid == os.getpid()
    asked.abandon()


def test_a_shard_that_does_not_answer_in_time_has_no_report(path: Path, client: LinkClient) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        with pytest.raises(QueryUnavailable, match=r"shard 3 did not tell how it is within 0.05 s"):
            client.report(0.05)


def test_where_nobody_listens_the_shard_is_not_running(client: LinkClient) -> None:
    with pytest.raises(QueryUnavailable, match="shard 3 is not running"):
        client.ask(ASK, give())
    with pytest.raises(QueryUnavailable, match="shard 3 is not running"):
        client.report(1.0)


def test_questions_go_on_after_the_shard_was_started_again(service: Service, path: Path, client: LinkClient) -> None:
    for _ in range(3):
        with LinkServer(path, service, CLOCK):
            assert client.ask(ASK, give()).warnings
            assert client.ask(ASK, give()).warnings
        with pytest.raises(QueryUnavailable):
            client.ask(ASK, give())


def test_a_kept_connection_that_breaks_as_the_question_is_sent_is_replaced(
    service: Service, path: Path, client: LinkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LinkServer(path, service, CLOCK):
        client.ask(ASK, give())
    with LinkServer(path, service, CLOCK):
        # As if the process had ended only after the connection was looked at.
        monkeypatch.setattr("strandline.node.query.link_client._is_quiet", lambda _connection: True)
        assert client.ask(ASK, give()).warnings


def next_question(listener: socket.socket) -> socket.socket:
    """The next connection over which something is asked; whoever wants the page of an edition gets none."""
    while True:
        connection, _ = listener.accept()
        if b'"edition"' not in connection.recv(1 << 16):
            return connection
        connection.close()


def test_a_question_that_a_kept_connection_swallowed_is_asked_again(path: Path, client: LinkClient) -> None:
    """The process ends between the last look at the connection and its reading of the question."""
    replies = [b"".join(encode(answer_message(BucketsAnswer((), (word,))))) for word in ("first", "second")]
    with socket.socket(socket.AF_UNIX) as listener, ThreadPoolExecutor(1) as threads:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(WAIT_S)

        def answer_and_end() -> None:
            for reply in replies:
                connection = next_question(listener)
                with connection:
                    connection.sendall(reply)
                    connection.recv(1 << 16)

        answering = threads.submit(answer_and_end)
        assert client.ask(ASK, give()).warnings == ("first",)
        assert client.ask(ASK, give()).warnings == ("second",)
        client.close()
        answering.result(WAIT_S)


@pytest.mark.parametrize("sent", [0, 1, 10, 40, -1], ids=lambda sent: f"{sent} bytes")
def test_a_shard_that_ends_in_the_middle_of_an_answer_is_an_error(path: Path, client: LinkClient, sent: int) -> None:
    frame = b"".join(encode(Message("buckets", {"warnings": [], "buckets": []}, (np.arange(9),))))
    with socket.socket(socket.AF_UNIX) as listener, ThreadPoolExecutor(1) as threads:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(WAIT_S)

        def half_an_answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(16)
                connection.sendall(frame[:sent])

        ending = threads.submit(half_an_answer)
        with pytest.raises(QueryUnavailable, match="shard 3 ended before it had answered"):
            client.ask(ASK, give())
        ending.result(WAIT_S)


def test_an_answer_that_is_none_is_an_error(path: Path, client: LinkClient) -> None:
    with socket.socket(socket.AF_UNIX) as listener, ThreadPoolExecutor(1) as threads:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(WAIT_S)

        def nonsense() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" * 4)

        talking = threads.submit(nonsense)
        with pytest.raises(QueryUnavailable, match="shard 3 gave an answer that is none"):
            client.ask(ASK, give())
        talking.result(WAIT_S)


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    "nonsense",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        PREFIX.pack(b"SLQ1", 1 << 25, 0),
        PREFIX.pack(b"SLQ1", 2, 1 << 25),
        PREFIX.pack(b"SLP1", 0, 1 << 25),
        PREFIX.pack(b"SLP1", 0, 3) + b"abc",
    ],
)
def test_nonsense_ends_its_own_connection_only(path: Path, client: LinkClient, nonsense: bytes) -> None:
    client.ask(ASK, give())
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(path))
        stranger.sendall(nonsense)
        stranger.settimeout(WAIT_S)
        # A reset tells that something was thrown away unread.
        with suppress(ConnectionResetError):
            assert stranger.recv(10) == b""
    assert client.ask(ASK, give()).warnings


def test_more_connections_than_are_taken_are_refused_with_a_reason(
    service: Service, path: Path, client: LinkClient
) -> None:
    with LinkServer(path, service, CLOCK, most_connections=1):
        service.answers = service.work_until_given_up
        asked = client.begin(ASK, give(600.0))
        assert service.begun.wait(WAIT_S)
        with pytest.raises(QueryUnavailable, match="as many connections"):
            client.ask(ASK, give())
        asked.abandon()


def test_closing_gives_up_what_is_worked_on(service: Service, path: Path, client: LinkClient) -> None:
    service.answers = service.work_until_given_up
    with LinkServer(path, service, CLOCK) as server:
        asked = client.begin(ASK, give(600.0))
        assert service.begun.wait(WAIT_S)
        server.close()
        with pytest.raises(QueryUnavailable):
            asked.answer()
    assert service.over.wait(WAIT_S)
    assert not path.exists()


def answering_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "answering"]


def test_closing_ends_threads_that_wait_for_a_question_or_for_the_rest_of_one(service: Service, path: Path) -> None:
    question = b"".join(encode(ask_message(ASK, WAIT_S)))
    with LinkServer(path, service, CLOCK) as server, ExitStack() as stack:
        for begun in (b"", question[:7], question[:20]):
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            connection.settimeout(WAIT_S)
            connection.connect(str(path))
            # Once it has answered, its thread is there and waits.
            connection.sendall(question)
            assert connection.recv(1 << 16)
            connection.sendall(begun)
        assert len(answering_threads()) == 3
        server.close()
        assert answering_threads() == []


def test_closing_ends_a_thread_whose_answer_nobody_fetches(service: Service, path: Path) -> None:
    data = np.zeros(5_000_001, dtype=np.uint8)
    service.answers = lambda *_: TermsAnswer(np.array([0, len(data)]), data, np.array([7]), more=False)
    with LinkServer(path, service, CLOCK) as server, socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(WAIT_S)
        connection.connect(str(path))
        connection.sendall(b"".join(encode(ask_message(ASK, WAIT_S))))
        # Its first bytes are here, and the rest is more than the kernel holds.
        assert connection.recv(1)
        server.close()
        assert answering_threads() == []


def send_in_pieces(connection: socket.socket, question: bytes, piece: int) -> None:
    for first in range(0, len(question), piece):
        connection.sendall(question[first : first + piece])
        # The pieces must not be sent together: the thread takes each before the next one comes.
        while fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)) != bytes(4):
            os.sched_yield()


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("piece", [1, 7, 16, 17, 60])
def test_a_question_that_comes_in_pieces_is_answered(path: Path, piece: int) -> None:
    question = b"".join(encode(ask_message(ASK, WAIT_S)))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(WAIT_S)
        connection.connect(str(path))
        send_in_pieces(connection, question, piece)
        connection.setblocking(False)
        answer = answer_of(receive(connection, wait_for_ever))
        assert answer.warnings == (repr(ASK),)


def test_the_socket_is_for_its_own_user_and_replaces_one_that_was_left(service: Service, path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with LinkServer(path, service, CLOCK):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_path_that_can_be_no_socket_is_refused(service: Service, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    for path, reason in (
        (tmp_path / "file", "no socket"),
        (tmp_path / "nowhere" / "socket", "can't be made"),
        (tmp_path / ("long" * 30), "longer than"),
    ):
        with pytest.raises(LinkUnusable, match=reason):
            LinkServer(path, service, CLOCK)
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.usefixtures("server")
def test_a_closed_client_keeps_no_connection(client: LinkClient) -> None:
    asked = client.begin(ASK, give())
    client.close()
    assert asked.answer().warnings
    assert client._idle == []
