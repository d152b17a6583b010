"""The front's end of the link: answers, restarts of the shard, and cancelled requests."""

import asyncio
import socket
import threading
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strandline.clock import wait_until
from strandline.index.part_columns import Span
from strandline.node.query.answer_messages import QueryFailed, answer_message
from strandline.node.query.answers import Answer, BucketsAnswer, TermsAnswer
from strandline.node.query.frames import encode_joined
from strandline.node.query.link_server import LinkServer
from strandline.node.query.link_socket import SMALL_MESSAGE
from strandline.node.query.queries import (
    Cancellation,
    QueryCancelled,
    QueryScope,
    QueryTimedOut,
    QueryTooLarge,
    QueryUnavailable,
)
from strandline.node.query.shard_queries import ShardQueries
from strandline.node.query.shard_requests import LabelValuesRequest, ShardRequest
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from support.links import (
    CLOCK,
    REQUEST,
    WAIT_S,
    LinkClient,
    Loop,
    Service,
    answer_frame,
    answering,
    no_connection_waits,
    scripted,
    sending,
)
from support.query_worlds import FixedShards

pytestmark = pytest.mark.unit

SPAN = Span(3, 10, 20)


def terms_of_size(size: int) -> TermsAnswer:
    """An answer whose frame has this many bytes."""
    length = size - 300
    while True:
        data = np.arange(length, dtype=np.uint8)
        answer = TermsAnswer(np.array([0, length]), data, np.array([7]), more=False)
        if len(encode_joined(answer_message(answer))) == size:
            return answer
        length += 1


@pytest.mark.usefixtures("server")
def test_each_of_many_tasks_gets_the_answer_to_its_own_request(linked: LinkClient) -> None:
    requests = [LabelValuesRequest(f"label {number}", (), None, number) for number in range(200)]

    async def all_at_once() -> list[Answer]:
        return await asyncio.gather(*map(linked.send, requests))

    assert [answer.warnings for answer in linked.loop.run(all_at_once())] == [(repr(request),) for request in requests]


@pytest.mark.usefixtures("server")
def test_a_connection_is_reused(service: Service, linked: LinkClient) -> None:
    threads = set[int]()

    def answer(_request: ShardRequest, _cancellation: Cancellation) -> BucketsAnswer:
        threads.add(threading.get_ident())
        return BucketsAnswer(())

    service.answers = answer
    for _ in range(5):
        linked.request()
    # The shard has a thread for each connection.
    assert len(threads) == 1


def test_the_number_of_idle_connections_is_limited(server: LinkServer, linked: LinkClient) -> None:
    async def request_concurrently() -> None:
        await asyncio.gather(*(linked.send() for _ in range(60)))

    linked.loop.run(request_concurrently())
    assert wait_until(lambda: len(server._connections) <= 16, timeout=WAIT_S, clock=CLOCK)


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("size", [SMALL_MESSAGE - 8, SMALL_MESSAGE, SMALL_MESSAGE + 8, 5_000_000])
def test_an_answer_of_any_size_arrives_complete(service: Service, linked: LinkClient, size: int) -> None:
    sent = terms_of_size(size)
    service.answers = lambda *_: sent

    async def request_twice() -> list[Answer]:
        return await asyncio.gather(linked.send(), linked.send())

    for _ in range(2):
        for answer in linked.loop.run(request_twice()):
            assert isinstance(answer, TermsAnswer)
            assert (answer.data == sent.data).all()
            assert answer.counts.tolist() == [7]


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("size", [1000, SMALL_MESSAGE + 8])
def test_a_received_answer_is_not_overwritten_by_the_next_one(service: Service, linked: LinkClient, size: int) -> None:
    sent = terms_of_size(size)
    service.answers = lambda *_: sent
    first = linked.request()
    service.answers = lambda *_: replace(sent, data=sent.data[::-1])
    second = linked.request()
    assert isinstance(first, TermsAnswer)
    assert isinstance(second, TermsAnswer)
    assert (first.data == sent.data).all()
    assert (second.data == sent.data[::-1]).all()


@pytest.mark.parametrize("piece", [1, 15, 16, 40])
def test_an_answer_that_arrives_in_pieces_is_joined(path: Path, linked: LinkClient, piece: int) -> None:
    frame = answer_frame("word")
    pieces = [frame[first : first + piece] for first in range(0, len(frame), piece)]

    async def send_pieces() -> Answer:
        """Send each piece after the previous one was received."""
        writers: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        server = await asyncio.start_unix_server(lambda _, writer: writers.put_nowait(writer), str(path))
        request = asyncio.ensure_future(linked.send())
        writer = await writers.get()
        for data in pieces:
            assert not request.done()
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(0)
        answer = await request
        writer.close()
        server.close()
        return answer

    assert linked.loop.run(send_pieces()).warnings == ("word",)


@pytest.mark.usefixtures("server")
def test_errors_of_the_shard_are_raised_in_the_front_and_the_link_stays_usable(
    service: Service, linked: LinkClient
) -> None:
    def refuse(*_: object) -> Answer:
        raise QueryTooLarge("far too much", remedy="Ask for less")

    def fail_unexpectedly(*_: object) -> Answer:
        raise ZeroDivisionError("a secret")

    service.answers = refuse
    with pytest.raises(QueryTooLarge, match=r"far too much\. Ask for less"):
        linked.request()
    service.answers = fail_unexpectedly
    with pytest.raises(QueryFailed, match="ZeroDivisionError") as caught:
        linked.request()
    assert "secret" not in str(caught.value)
    service.answers = lambda *_: BucketsAnswer((), ("fine",))
    assert linked.request().warnings == ("fine",)


def test_a_task_that_is_cancelled_ends_the_shard_s_work(
    service: Service, server: LinkServer, linked: LinkClient
) -> None:
    service.answers = service.work_until_given_up

    async def cancel() -> None:
        request = asyncio.ensure_future(linked.send())
        await asyncio.to_thread(service.begun.wait, WAIT_S)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert await asyncio.to_thread(service.over.wait, WAIT_S)

    linked.loop.run(cancel())
    assert [type(error) for error in service.ended] == [QueryCancelled]
    assert wait_until(lambda: not server._connections, timeout=WAIT_S, clock=CLOCK)


@pytest.mark.usefixtures("server")
def test_a_query_that_takes_too_long_ends_on_both_sides(service: Service, linked: LinkClient) -> None:
    service.answers = service.work_until_given_up
    status = FixedShards({3: ShardProcessStatus(3, ProcessState.RUNNING)})
    queries = ShardQueries(lambda: {3: linked.link}, status, linked.workers, concurrency=1)
    with pytest.raises(QueryTimedOut, match=r"took longer than 0\.1 s"):
        linked.loop.run(queries.buckets(REQUEST, QueryScope(0.1, linked.memory.lease())))
    assert service.over.wait(WAIT_S)


def test_without_a_listener_the_shard_is_not_running(linked: LinkClient) -> None:
    with pytest.raises(QueryUnavailable, match="shard 3 is not running"):
        linked.request()


def test_requests_succeed_after_a_restart_of_the_shard(service: Service, path: Path, linked: LinkClient) -> None:
    """The event loop does not run meanwhile: the closed connection is noticed only when the request is sent."""
    for _ in range(3):
        with LinkServer(path, service, CLOCK):
            assert linked.request().warnings
            assert linked.request().warnings
    with pytest.raises(QueryUnavailable):
        linked.request()


def test_a_request_lost_on_an_idle_connection_is_sent_again(path: Path, linked: LinkClient) -> None:
    """The process ends after the last check of the connection, and before it reads the request."""
    with scripted(path, answering("first"), answering("second")):
        assert linked.request().warnings == ("first",)
        assert linked.request().warnings == ("second",)
        linked.close()


def test_a_request_is_sent_again_only_once(path: Path, linked: LinkClient) -> None:
    with scripted(path, answering("first"), answering()) as listener:
        assert linked.request().warnings == ("first",)
        with pytest.raises(QueryUnavailable, match="shard 3 ended before it had answered"):
            linked.request()
        assert no_connection_waits(listener)


FRAME = answer_frame("a word that makes it longer")


@pytest.mark.parametrize("sent", [0, 1, 15, 16, 40, len(FRAME) - 1], ids=lambda sent: f"{sent} bytes")
def test_a_shard_that_ends_in_the_middle_of_an_answer_is_an_error(path: Path, linked: LinkClient, sent: int) -> None:
    with (
        scripted(path, sending(FRAME[:sent])) as listener,
        pytest.raises(QueryUnavailable, match="shard 3 ended before it had answered"),
    ):
        linked.request()
    assert listener.fileno() == -1


def test_a_request_is_not_sent_again_after_its_answer_has_begun(path: Path, linked: LinkClient) -> None:
    def begin_second_answer(connection: object) -> None:
        answering("first")(connection)  # reads the second request, too
        connection.sendall(FRAME[:20])

    with scripted(path, begin_second_answer) as listener:
        assert linked.request().warnings == ("first",)
        with pytest.raises(QueryUnavailable, match="shard 3 ended before it had answered"):
            linked.request()
        assert no_connection_waits(listener)


def test_data_without_a_request_closes_the_connection(path: Path, linked: LinkClient) -> None:
    def answer_first(connection: object) -> None:
        answering("first")(connection)

    def send_unrequested(connection: object) -> None:
        assert connection.recv(1 << 16)
        connection.sendall(answer_frame("first"))
        is_idle.wait(WAIT_S)
        connection.sendall(answer_frame("unasked"))
        assert connection.recv(1 << 16) == b""

    is_idle = threading.Event()
    with scripted(path, send_unrequested, answer_first):
        assert linked.request().warnings == ("first",)
        is_idle.set()

        async def wait_until_closed() -> None:
            while linked.link._link.newest().is_open:
                await asyncio.sleep(0)

        linked.loop.run(wait_until_closed())
        assert linked.request().warnings == ("first",)
        linked.close()


def test_closing_the_server_cancels_requests(service: Service, path: Path, linked: LinkClient) -> None:
    service.answers = service.work_until_given_up
    with LinkServer(path, service, CLOCK) as server:

        async def close_meanwhile() -> None:
            request = asyncio.ensure_future(linked.send())
            await asyncio.to_thread(service.begun.wait, WAIT_S)
            await asyncio.to_thread(server.close)
            with pytest.raises(QueryUnavailable, match="shard 3 ended"):
                await request

        linked.loop.run(close_meanwhile())
    assert service.over.wait(WAIT_S)


def test_a_shard_with_too_many_connections_is_unavailable(service: Service, path: Path, linked: LinkClient) -> None:
    with LinkServer(path, service, CLOCK, max_connections=0), pytest.raises(QueryUnavailable, match="shard"):
        linked.request()


def test_a_shard_that_accepts_no_connections_is_unavailable_and_not_reported_as_ended(path: Path, loop: Loop) -> None:
    with socket.socket(socket.AF_UNIX) as listener, ExitStack() as waiting:
        listener.bind(str(path))
        listener.listen(0)
        while fills(waiting.enter_context(socket.socket(socket.AF_UNIX)), path):
            pass
        linked = waiting.enter_context(closing(LinkClient(path, loop)))
        with pytest.raises(QueryUnavailable, match="shard 3") as caught:
            linked.request()
    assert "not running" not in str(caught.value)


def fills(connection: socket.socket, path: Path) -> bool:
    """Whether the listener's backlog has room for this connection."""
    connection.setblocking(False)
    return connection.connect_ex(str(path)) == 0


def test_a_closed_link_keeps_no_connection(server: LinkServer, linked: LinkClient) -> None:
    async def close_meanwhile() -> None:
        request = asyncio.ensure_future(linked.send())
        await asyncio.sleep(0)
        linked.link.close()
        assert (await request).warnings

    linked.loop.run(close_meanwhile())
    assert wait_until(lambda: not server._connections, timeout=WAIT_S, clock=CLOCK)


class TestIndexVersion:
    @pytest.mark.usefixtures("server")
    def test_a_published_version_is_read_at_once(self, service: Service, linked: LinkClient) -> None:
        assert linked.link.index_version() is None
        linked.request()
        assert linked.link.index_version() is None, "no version was published yet"
        service.page.publish("one", SPAN)
        first = linked.link.index_version()
        assert first is not None
        assert (first.last_start, first.first_end) == (10, 20)
        service.page.publish("two", SPAN)
        second = linked.link.index_version()
        assert second is not None
        assert second.numbers != first.numbers
        service.page.publish(None, SPAN)
        assert linked.link.index_version() is None

    def test_no_version_is_valid_after_the_process_has_ended(
        self, service: Service, path: Path, linked: LinkClient
    ) -> None:
        with LinkServer(path, service, CLOCK):
            linked.request()
            service.page.publish("one", SPAN)
            before = linked.link.index_version()
            assert before is not None
        # It was killed: its page still has the last published version.
        linked.loop.run(asyncio.to_thread(lambda: None))
        assert linked.link.index_version() is None
        restarted = Service(path)
        with closing(restarted.page), LinkServer(path, restarted, CLOCK):
            linked.request()
            restarted.page.publish("one", SPAN)
            after = linked.link.index_version()
            assert after is not None
            assert after.numbers != before.numbers, "versions of two processes differ, whatever their numbers"

    def test_the_page_of_a_new_process_is_read_even_without_a_request_during_the_restart(
        self, service: Service, path: Path, linked: LinkClient
    ) -> None:
        with LinkServer(path, service, CLOCK):
            linked.request()
            service.page.publish("old", SPAN)
        restarted = Service(path)
        with closing(restarted.page), LinkServer(path, restarted, CLOCK):
            linked.request()
            assert linked.link.index_version() is None
            restarted.page.publish("new", SPAN)
            assert linked.link.index_version() is not None

    def test_without_a_published_version_the_version_is_unknown(self, path: Path, linked: LinkClient) -> None:
        with LinkServer(path, Service(), CLOCK):
            assert linked.request(REQUEST).warnings
            assert linked.link.index_version() is None

    @pytest.mark.usefixtures("server")
    def test_a_closed_link_reads_no_version(self, service: Service, linked: LinkClient) -> None:
        linked.request()
        service.page.publish("one", SPAN)
        assert linked.link.index_version() is not None
        linked.close()
        assert linked.link.index_version() is None
        linked.close()
