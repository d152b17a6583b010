"""Lookups over a link to the shard's JVM, and the conditions in which it gets none."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from strandline.clock import wait_until
from strandline.index.matchers import Matcher, MatchOp
from strandline.node.query.answers import Answer
from strandline.node.query.frames import Message, encode_joined
from strandline.node.query.lookup_frames import lookup_frame, lookups_path
from strandline.node.query.shard_requests import SeriesRequest
from support.links import CLOCK, WAIT_S, LinkClient, answer_frame, answering, no_connection_waits, scripted, sending

pytestmark = pytest.mark.unit

FRAME = lookup_frame(SeriesRequest(((Matcher("job", MatchOp.EQUAL, "a"),),), None, 5)) or b""
DECLINED = encode_joined(Message("declined", {}))
MAX_LOOKUPS = 16
PAUSE_S = 1.0


@pytest.fixture
def jvm(path: Path) -> Path:
    """The path of the JVM's socket."""
    return lookups_path(path)


class FakeJvm:
    """A JVM whose connections the test accepts itself."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener

    async def next(self) -> socket.socket:
        """The next connection, after a lookup was received over it."""
        return await asyncio.to_thread(self._next)

    def _next(self) -> socket.socket:
        connection, _ = self.listener.accept()
        connection.settimeout(WAIT_S)
        assert connection.recv(1 << 16) == FRAME
        return connection


@pytest.fixture
def listener(jvm: Path) -> Iterator[FakeJvm]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(jvm))
        listening.listen()
        listening.settimeout(WAIT_S)
        yield FakeJvm(listening)


def is_answered_again(linked: LinkClient) -> bool:
    return wait_until(lambda: linked.look_up(FRAME) is not None, timeout=WAIT_S, clock=CLOCK)


def test_the_jvms_answer_is_returned(jvm: Path, linked: LinkClient) -> None:
    with scripted(jvm, answering("one", "two")):
        assert [answer.warnings for answer in (linked.look_up(FRAME), linked.look_up(FRAME)) if answer] == [
            ("one",),
            ("two",),
        ]
        linked.close()


def test_a_declined_lookup_is_none_and_keeps_its_connection(jvm: Path, linked: LinkClient) -> None:
    def decline_first(connection: socket.socket) -> None:
        assert connection.recv(1 << 16) == FRAME
        connection.sendall(DECLINED)
        answering("found")(connection)

    with scripted(jvm, decline_first):
        assert linked.look_up(FRAME) is None
        answer = linked.look_up(FRAME)
        assert answer is not None
        assert answer.warnings == ("found",)
        linked.close()


def test_a_jvm_that_does_not_listen_gets_no_lookups_for_a_second(jvm: Path, linked: LinkClient) -> None:
    assert linked.look_up(FRAME) is None
    since = CLOCK.monotonic()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(jvm))
        listener.listen()
        assert linked.look_up(FRAME) is None
        assert no_connection_waits(listener)
    jvm.unlink()
    with scripted(jvm, answering("one")):
        assert is_answered_again(linked)
        assert CLOCK.monotonic() - since >= PAUSE_S
        linked.close()


@pytest.mark.parametrize("sent", [b"", DECLINED[:10]], ids=["full", "ends"])
def test_a_jvm_that_closes_the_connection_gets_no_lookups_for_a_second(
    jvm: Path, linked: LinkClient, sent: bytes
) -> None:
    with scripted(jvm, sending(sent), answering("one")) as listener:
        assert linked.look_up(FRAME) is None
        since = CLOCK.monotonic()
        assert linked.look_up(FRAME) is None
        assert listener.fileno() != -1
        assert is_answered_again(linked)
        assert CLOCK.monotonic() - since >= PAUSE_S / 2
        linked.close()


def test_a_restarted_jvm_gets_lookups_over_a_new_connection_at_once(jvm: Path, linked: LinkClient) -> None:
    with scripted(jvm, answering("one"), answering("two")):
        for word in ("one", "two"):
            answer = linked.look_up(FRAME)
            assert answer is not None
            assert answer.warnings == (word,)
        linked.close()


def test_a_damaged_answer_is_none_and_the_next_lookup_goes_to_the_jvm(jvm: Path, linked: LinkClient) -> None:
    with scripted(jvm, sending(b"HTTP/1.1 400 Bad Request\r\n\r\n"), answering("fine")):
        assert linked.look_up(FRAME) is None
        assert linked.look_up(FRAME) is not None
        linked.close()


def test_more_than_sixteen_concurrent_lookups_go_to_the_process(listener: FakeJvm, linked: LinkClient) -> None:
    async def fill_slots() -> list[Answer | None]:
        with ExitStack() as open_connections:
            lookups = [asyncio.ensure_future(linked.looked_up(FRAME)) for _ in range(MAX_LOOKUPS)]
            connections = [open_connections.enter_context(await listener.next()) for _ in range(MAX_LOOKUPS)]
            assert await linked.looked_up(FRAME) is None, "it exceeds the limit"
            assert no_connection_waits(listener.listener)
            connections[3].sendall(answer_frame("early"))
            done, _ = await asyncio.wait(lookups, return_when=asyncio.FIRST_COMPLETED)
            # As soon as one is answered, its slot is free.
            one_more = asyncio.ensure_future(linked.looked_up(FRAME))
            assert await asyncio.to_thread(connections[3].recv, 1 << 16) == FRAME
            for connection in connections:
                connection.sendall(answer_frame("late"))
            assert [task.result().warnings for task in done] == [("early",)]
            return [await one_more, *await asyncio.gather(*lookups)]

    answers = linked.loop.run(fill_slots())
    assert sorted(answer.warnings[0] for answer in answers if answer) == ["early"] + ["late"] * MAX_LOOKUPS
    linked.close()


def test_a_cancelled_lookup_closes_its_connection_and_frees_its_slot(listener: FakeJvm, linked: LinkClient) -> None:
    async def cancel_lookups() -> None:
        for _ in range(2 * MAX_LOOKUPS):
            lookup = asyncio.ensure_future(linked.looked_up(FRAME))
            with await listener.next() as connection:
                lookup.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await lookup
                assert await asyncio.to_thread(connection.recv, 1) == b""

    linked.loop.run(cancel_lookups())
    linked.close()


@pytest.mark.usefixtures("server")
def test_requests_go_to_the_process_regardless_of_the_jvm(jvm: Path, linked: LinkClient) -> None:
    assert linked.look_up(FRAME) is None
    assert linked.request().warnings
    assert not jvm.exists()


def test_lookups_do_not_wait_for_each_other(listener: FakeJvm, linked: LinkClient) -> None:
    async def look_up_twice() -> tuple[Answer | None, Answer | None]:
        first = asyncio.ensure_future(linked.looked_up(FRAME))
        with await listener.next() as first_connection:
            second = asyncio.ensure_future(linked.looked_up(FRAME))
            with await listener.next() as second_connection:
                second_connection.sendall(answer_frame("second"))
                later = await second
                assert not first.done()
                first_connection.sendall(answer_frame("first"))
                return await first, later

    answers = linked.loop.run(look_up_twice())
    assert [answer.warnings for answer in answers if answer] == [("first",), ("second",)]
    linked.close()
