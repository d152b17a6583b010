"""What the event loop asks of a shard without a thread, and the editions that it reads."""

import asyncio
import gc
import socket
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from strandline.clock import wait_until
from strandline.index.part_columns import Span
from strandline.node.query import link_server
from strandline.node.query.answers import BucketsAnswer, TermsAnswer
from strandline.node.query.asks import Ask, LabelNamesAsk, LabelValuesAsk
from strandline.node.query.frames import Message, encode
from strandline.node.query.link_client import AskedAtOnce, LinkClient
from strandline.node.query.link_server import LinkServer
from strandline.node.query.link_socket import SHORT, Waits
from strandline.node.query.node_queries import ComingFromShards, ShardQueries
from strandline.node.query.queries import Cancellation, QueryCancelled, QueryTimedOut, QueryUnavailable
from strandline.node.query.quick import Question
from strandline.node.supervisor.standing import ProcessState, ShardStanding
from support.express_sites import Standing
from support.http_servers import in_loop
from support.links import ASK, CLOCK, WAIT_S, Service, give

pytestmark = pytest.mark.unit

Result = TypeVar("Result")
QUESTION = Question.of(LabelNamesAsk((), None, 1))


def asked_at_once(
    client: LinkClient,
    test: Callable[[AskedAtOnce, asyncio.Event], Awaitable[Result]],
    cancellation: Cancellation,
    question: Question = QUESTION,
) -> Result:
    """Ask in an event loop, and go on with what is under way."""

    async def run() -> Result:
        came = asyncio.Event()
        asked = client.begin_at_once(question, cancellation, came.set)
        assert asked is not None
        return await test(asked, came)

    return in_loop(run())


async def when_it_came(asked: AskedAtOnce, came: asyncio.Event) -> AskedAtOnce:
    await came.wait()
    return asked


class Asker:
    """Asks, keeps what is coming, and is told when it came."""

    def __init__(self, queries: ShardQueries) -> None:
        self.is_told = asyncio.Event()
        coming = queries.begin_at_once(QUESTION, give(), self.came)
        assert coming is not None
        self.coming = coming

    def came(self) -> None:
        self.is_told.set()


class TestAskedAtOnce:
    """What an event loop asks without a thread."""

    @pytest.mark.usefixtures("server")
    def test_a_short_answer_is_here_when_it_came(self, client: LinkClient) -> None:
        asked = asked_at_once(client, when_it_came, give())
        assert asked.frame is not None
        assert asked.answer().warnings == (repr(QUESTION.ask()),)

    @pytest.mark.usefixtures("server")
    def test_a_connection_is_used_again(self, service: Service, client: LinkClient) -> None:
        threads = set[int]()

        def answer(_ask: Ask, _cancellation: Cancellation) -> BucketsAnswer:
            threads.add(threading.get_ident())
            return BucketsAnswer(())

        service.answers = answer

        async def run() -> None:
            for _ in range(3):
                came = asyncio.Event()
                asked = client.begin_at_once(QUESTION, give(), came.set)
                assert asked is not None
                await came.wait()
                asked.answer()

        in_loop(run())
        # The shard has a thread for each connection.
        assert len(threads) == 1

    @pytest.mark.usefixtures("server")
    @pytest.mark.parametrize("fetches", [True, False], ids=["fetched", "abandoned"])
    def test_a_question_to_all_shards_is_gone_when_it_is_over(self, client: LinkClient, fetches: bool) -> None:
        """Without the collector, though whoever is told of the answer keeps the question until then."""
        queries = ShardQueries(lambda: {3: client}, Standing((ShardStanding(3, ProcessState.RUNNING),)))

        async def run() -> None:
            asker = Asker(queries)
            if fetches:
                await asker.is_told.wait()
                with pytest.raises(QueryUnavailable, match="something else than was asked"):
                    asker.coming.answer()
            else:
                asker.coming.abandon()

        gc.collect()
        gc.disable()
        try:
            in_loop(run())
            assert not [one for one in gc.get_objects() if isinstance(one, ComingFromShards)]
        finally:
            gc.enable()

    @pytest.mark.usefixtures("server")
    def test_several_are_under_way_at_a_time(self, service: Service, client: LinkClient) -> None:
        both = threading.Barrier(2, timeout=WAIT_S)

        def answer(_ask: Ask, _cancellation: Cancellation) -> BucketsAnswer:
            both.wait()
            return BucketsAnswer(())

        service.answers = answer

        async def run() -> list[AskedAtOnce | None]:
            came = [asyncio.Event(), asyncio.Event()]
            asked = [client.begin_at_once(QUESTION, give(), one.set) for one in came]
            for one in came:
                await one.wait()
            return asked

        assert [one.answer() for one in in_loop(run()) if one is not None] == [BucketsAnswer(()), BucketsAnswer(())]

    @pytest.mark.usefixtures("server")
    def test_a_long_answer_is_left_to_a_thread(self, service: Service, client: LinkClient) -> None:
        data = np.zeros(SHORT + 1, dtype=np.uint8)
        service.answers = lambda *_: TermsAnswer(np.array([0, len(data)]), data, np.array([7]), more=False)
        asked = asked_at_once(client, when_it_came, give())
        assert asked.frame is None
        answer = asked.answer()
        assert isinstance(answer, TermsAnswer)
        assert len(answer.data) == len(data)

    @pytest.mark.usefixtures("server")
    def test_one_that_is_late_is_left_to_a_thread_which_says_so(self, service: Service, client: LinkClient) -> None:
        service.answers = service.work_until_given_up

        async def detached(asked: AskedAtOnce, came: asyncio.Event) -> AskedAtOnce:
            asked.detach()
            assert not came.is_set()
            return asked

        asked = asked_at_once(client, detached, give(0.05))
        with pytest.raises(QueryTimedOut):
            asked.answer()
        assert service.over.wait(WAIT_S)

    @pytest.mark.usefixtures("server")
    def test_one_that_is_given_up_is_so_at_the_other_end(self, service: Service, client: LinkClient) -> None:
        service.answers = service.work_until_given_up

        async def abandoned(asked: AskedAtOnce, came: asyncio.Event) -> None:
            await asyncio.to_thread(service.begun.wait, WAIT_S)
            asked.abandon()
            await asyncio.to_thread(service.over.wait, WAIT_S)
            assert not came.is_set()

        asked_at_once(client, abandoned, give())
        (error,) = service.ended
        assert isinstance(error, QueryCancelled)

    def test_where_nobody_listens_it_is_a_thread_s_to_find_out(self, client: LinkClient) -> None:
        async def run() -> AskedAtOnce | None:
            return client.begin_at_once(QUESTION, give(), lambda: None)

        assert in_loop(run()) is None

    def test_a_process_that_went_away_is_a_thread_s_to_find(self, service: Service, path: Path) -> None:
        service.answers = service.work_until_given_up
        with closing(LinkClient(path, 3, CLOCK)) as client:
            with LinkServer(path, service, CLOCK) as server:

                async def gone(asked: AskedAtOnce, came: asyncio.Event) -> AskedAtOnce:
                    await asyncio.to_thread(service.begun.wait, WAIT_S)
                    await asyncio.to_thread(server.close)
                    return await when_it_came(asked, came)

                asked = asked_at_once(client, gone, give())
            assert asked.frame is None
            with pytest.raises(QueryUnavailable):
                asked.answer()

    def test_a_new_process_is_asked_again(self, service: Service, path: Path) -> None:
        """What was kept open to the one before is noticed, and costs nobody an answer."""
        with closing(LinkClient(path, 3, CLOCK)) as client:

            async def run() -> None:
                for _ in range(2):
                    with LinkServer(path, service, CLOCK):
                        came = asyncio.Event()
                        asked = client.begin_at_once(QUESTION, give(), came.set)
                        assert asked is not None
                        await came.wait()
                        assert asked.answer().warnings == (repr(QUESTION.ask()),)

            in_loop(run())

    @pytest.mark.usefixtures("server")
    def test_what_is_no_frame_is_told_as_that(self, client: LinkClient, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(link_server, "send", lambda connection, *_: connection.sendall(b"HTTP/1.1 400 Bad"))
        asked = asked_at_once(client, when_it_came, give())
        assert asked.frame is None
        with pytest.raises(QueryUnavailable, match="an answer that is none"):
            asked.answer()

    @pytest.mark.usefixtures("server")
    def test_an_answer_that_comes_in_pieces_is_put_together(
        self, client: LinkClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = threading.Event()

        def piecewise(connection: socket.socket, message: Message, _wait: Waits) -> None:
            frame = b"".join(encode(message))
            for place in range(0, len(frame), 10):
                connection.sendall(frame[place : place + 10])
            whole.set()

        monkeypatch.setattr(link_server, "send", piecewise)
        asked = asked_at_once(client, when_it_came, give())
        assert whole.wait(WAIT_S)
        assert asked.answer().warnings == (repr(QUESTION.ask()),)

    @pytest.mark.usefixtures("server")
    def test_a_question_that_does_not_go_out_at_once_is_a_thread_s_to_send(self, client: LinkClient) -> None:
        async def run() -> AskedAtOnce | None:
            long = "a" * (16 << 20)
            question = Question.of(LabelValuesAsk(long, (), None, 1))
            return client.begin_at_once(question, give(), lambda: None)

        assert in_loop(run()) is None

    @pytest.mark.usefixtures("server")
    def test_connections_are_closed_with_the_client(self, client: LinkClient, server: LinkServer) -> None:
        async def run() -> None:
            came = asyncio.Event()
            asked = client.begin_at_once(QUESTION, give(), came.set)
            assert asked is not None
            await came.wait()
            await asyncio.to_thread(client.close)
            # The shard's end has one connection less as soon as it sees the end of it.
            await asyncio.to_thread(wait_until, lambda: not server._connections, timeout=WAIT_S, clock=CLOCK)
            assert not server._connections
            assert client.begin_at_once(QUESTION, give(), came.set) is None

        in_loop(run())


class TestEditions:
    @pytest.mark.usefixtures("server")
    def test_what_the_shard_tells_is_seen_at_once(self, service: Service, client: LinkClient) -> None:
        assert client.edition() is None
        client.ask(ASK, give())
        assert client.edition() is None, "nothing was told yet"
        service.page.tell("one", Span(3, 10, 20))
        first = client.edition()
        assert first is not None
        assert (first.last_start, first.first_end) == (10, 20)
        service.page.tell("two", Span(3, 10, 20))
        second = client.edition()
        assert second is not None
        assert second.numbers != first.numbers
        service.page.tell(None, Span(3, 10, 20))
        assert client.edition() is None

    def test_nothing_holds_any_more_once_the_process_has_ended(self, service: Service, path: Path) -> None:
        with closing(LinkClient(path, 3, CLOCK)) as client:
            with LinkServer(path, service, CLOCK):
                client.ask(ASK, give())
                service.page.tell("one", Span(3, 10, 20))
                before = client.edition()
                assert before is not None
            assert client.edition() is None
            another = Service()
            with LinkServer(path, another, CLOCK):
                client.ask(ASK, give())
                another.page.tell("one", Span(3, 10, 20))
                after = client.edition()
                assert after is not None
                assert after.numbers != before.numbers, "another process's lists are others, whatever it calls them"
            another.page.close()

    def test_the_page_of_a_new_process_is_fetched_though_nobody_missed_the_old_one(
        self, service: Service, path: Path
    ) -> None:
        with closing(LinkClient(path, 3, CLOCK)) as client:
            with LinkServer(path, service, CLOCK):
                client.ask(ASK, give())
            another = Service()
            with LinkServer(path, another, CLOCK):
                client.ask(ASK, give())
                another.page.tell("one", Span(3, 10, 20))
                assert client.edition() is not None
            another.page.close()
