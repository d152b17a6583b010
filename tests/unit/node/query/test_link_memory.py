"""The memory of an answer while it is received over the link; and damaged frames."""

import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from strandline.errors import StrandlineError
from strandline.node.query import link_connection, shard_link
from strandline.node.query.answer_memory import AnswerMemoryFull, AnswerTooLarge
from strandline.node.query.answer_messages import answer_message
from strandline.node.query.answers import Answer, TermsAnswer
from strandline.node.query.frames import MAX_BODY, PREFIX, Message, encode_joined
from strandline.node.query.link_socket import SMALL_MESSAGE
from strandline.node.query.queries import QueryUnavailable
from support.links import REQUEST_FRAME, LinkClient, Loop, Service, answer_frame, answering, scripted, sending

pytestmark = pytest.mark.unit

HUGE = PREFIX.pack(b"SLQ1", 64, 1 << 35)
LONG = TermsAnswer(np.array([0, 1 << 20]), np.zeros(1 << 20, dtype=np.uint8), np.array([7]), more=False)
SIZE = len(encode_joined(answer_message(LONG)))


def claiming(prefix: bytes, received: list[bytes]) -> Callable[[socket.socket], None]:
    """Send a prefix, and record what is received afterwards."""

    def script(connection: socket.socket) -> None:
        assert connection.recv(1 << 16) == REQUEST_FRAME
        connection.sendall(prefix)
        received.append(connection.recv(1))

    return script


def request_with_lease(linked: LinkClient, lease: object) -> Answer:
    return linked.loop.run(linked.link.request(REQUEST_FRAME, lease))


@pytest.mark.parametrize("is_used", [False, True], ids=["too large", "memory in use"])
def test_memory_is_refused_before_an_answer_is_received_and_the_request_is_cancelled(
    path: Path, loop: Loop, monkeypatch: pytest.MonkeyPatch, is_used: bool
) -> None:
    def fail_allocation(*_: object, **__: object) -> None:
        raise AssertionError("memory was allocated for a refused answer")

    limit = (1 << 35) + (1 << 20) if is_used else 1 << 20
    with closing(LinkClient(path, loop, memory=limit)) as linked:
        other, lease = linked.memory.lease(), linked.memory.lease()
        other.grow(2 << 20 if is_used else 10)
        monkeypatch.setattr(link_connection.np, "empty", fail_allocation)
        received: list[bytes] = []
        refusal: type[StrandlineError] = AnswerMemoryFull if is_used else AnswerTooLarge
        with scripted(path, claiming(HUGE, received)):
            with pytest.raises(refusal):
                request_with_lease(linked, lease)
            assert (lease.held, linked.memory.used) == (0, other.held)
        assert received == [b""], "the connection was closed"


@pytest.mark.usefixtures("server")
def test_a_long_answer_holds_memory_until_it_is_released_and_a_short_one_none(
    service: Service, linked: LinkClient
) -> None:
    lease = linked.memory.lease()
    request_with_lease(linked, lease)
    assert linked.memory.used == 0
    service.answers = lambda *_: LONG
    for times in (1, 2):
        request_with_lease(linked, lease)
        assert linked.memory.used == lease.held == times * SIZE
    lease.release()
    assert linked.memory.used == 0


def test_an_incomplete_answer_holds_no_memory_after_release(path: Path, linked: LinkClient) -> None:
    frame = encode_joined(answer_message(LONG))
    lease = linked.memory.lease()
    with scripted(path, sending(frame[: 2 * SMALL_MESSAGE])), pytest.raises(QueryUnavailable):
        request_with_lease(linked, lease)
    assert lease.held == SIZE
    lease.release()
    assert linked.memory.used == 0


@pytest.mark.usefixtures("server")
def test_a_long_answer_is_decoded_in_a_thread_and_a_short_one_in_the_event_loop(
    service: Service, linked: LinkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = []

    def read(message: object) -> Message:
        readers.append(threading.current_thread() is threading.main_thread())
        return decode_frame(message)

    decode_frame = shard_link.decode_frame
    monkeypatch.setattr(shard_link, "decode_frame", read)
    linked.request()
    service.answers = lambda *_: LONG
    linked.request()
    assert readers == [True, False]


def changed(offset: int, data: bytes) -> bytes:
    frame = bytearray(answer_frame("word"))
    frame[offset : offset + len(data)] = data
    return bytes(frame)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" * 4, id="http"),
        pytest.param(changed(0, b"SLP1"), id="another magic"),
        pytest.param(PREFIX.pack(b"SLQ1", 64, MAX_BODY + 1), id="a length beyond all bounds"),
        pytest.param(PREFIX.pack(b"SLQ1", 2**32 - 1, 0), id="a header beyond all bounds"),
        pytest.param(changed(PREFIX.size, b"!"), id="no JSON"),
        pytest.param(answer_frame("word").replace(b'"version":3', b'"version":2'), id="another version"),
        pytest.param(answer_frame("word").replace(b'"kind"', b'"dink"'), id="no kind"),
        pytest.param(encode_joined(Message("what", {"warnings": []})), id="no answer"),
        pytest.param(answer_frame("word") + b"\0", id="a byte behind it"),
        pytest.param(answer_frame("word") + answer_frame("other"), id="two at once"),
        pytest.param(
            encode_joined(Message("series", {"warnings": [], "more": False}, (np.array([0, 9]), np.zeros(1, "u1")))),
            id="columns that do not fit together",
        ),
    ],
)
def test_an_invalid_frame_makes_a_shard_unavailable(path: Path, linked: LinkClient, frame: bytes) -> None:
    with (
        scripted(path, sending(frame)),
        pytest.raises(QueryUnavailable, match="shard 3 sent an answer that can't be read"),
    ):
        linked.request()


def test_the_next_request_after_a_damaged_frame_uses_another_connection(path: Path, linked: LinkClient) -> None:
    with scripted(path, sending(b"HTTP/1.1 400 Bad Request\r\n\r\n"), answering("fine")):
        with pytest.raises(QueryUnavailable):
            linked.request()
        assert linked.request().warnings == ("fine",)
        linked.close()
