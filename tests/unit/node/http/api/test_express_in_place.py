"""Look-ups of a lone client, which the event loop waits for in place: when it does, and what is the same then."""

import asyncio
import gc
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.node.http.api.express_lookups import _PATIENCE_S, ExpressLookup, ExpressLookups
from strandline.node.http.whole import Whole
from strandline.node.http.whole_requests import Headers
from strandline.node.metrics.front_figures import FrontFigures
from strandline.node.query.loop_links import LoopLinks
from strandline.node.query.plain_lookups import DECLINED
from support.express_sites import UP, body_of, found
from support.http_servers import in_loop
from support.quick_sites import request

pytestmark = pytest.mark.unit

# Of any number of shards the same.
ANSWER = found(b'[{"a":"b"}]', 1)
BODY = body_of(b'[{"a":"b"}]')


class Shard:
    """A socket that is answered from only when the test says so. It stands for another process: what it says is there
    whether or not the loop goes on.
    """

    def __init__(self, path: Path, opened: ExitStack) -> None:
        self.links = LoopLinks(path)
        self._opened = opened
        self._listener = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        self._listener.bind(str(path))
        self._listener.listen()
        self._connections: list[socket.socket] = []
        opened.callback(self.links.close)

    def say(self, answer: bytes) -> None:
        """To each that has asked."""
        self._listener.setblocking(False)
        while True:
            try:
                self._connections.append(self._opened.enter_context(self._listener.accept()[0]))
            except BlockingIOError:
                break
        for connection in self._connections:
            connection.setblocking(False)
            try:
                if connection.recv(4096):
                    connection.send(answer)
            except BlockingIOError:
                continue


class Client:
    """A connection that has sent a request, and was cleared for it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.declined = 0

    def cleared_fields(self, data: bytes, line_end: int) -> Headers:
        assert data[line_end:]
        return Headers({})

    def express_answered(self, whole: Whole, seconds: float) -> None:
        assert seconds >= 0
        self.bodies.append(whole.body)

    def express_declined(self) -> None:
        self.declined += 1


class Site:
    """Shards, and who asks them."""

    def __init__(self, shards: list[Shard]) -> None:
        self.shards, self.clock = shards, ManualClock()
        self.figures = FrontFigures(self.clock)
        self.lookups = ExpressLookups(self, self.figures, self.clock, 1000)

    def lookup_links(self) -> list[LoopLinks]:
        return [shard.links for shard in self.shards]

    def begun(self, client: Client) -> ExpressLookup:
        """A request that has just come, and that the shards are asked."""
        lookup = self.lookups.begin(request(UP), client)
        assert lookup is not None
        return lookup

    def say(self, answer: bytes = ANSWER) -> None:
        for shard in self.shards:
            shard.say(answer)

    async def answered_by_the_loop(self, client: Client, bodies: int) -> None:
        while len(client.bodies) < bodies:
            await asyncio.sleep(0)

    async def known(self, client: Client) -> None:
        """The client has asked before, so that it is alone."""
        lookup = self.begun(client)
        self.say()
        lookup.linger()
        await self.answered_by_the_loop(client, 1)
        client.bodies.clear()


def at_site(folder: Path, test: Callable[[Site], Awaitable[None]], shards: int = 1) -> None:
    async def run() -> None:
        with ExitStack() as opened:
            await test(Site([Shard(folder / str(number), opened) for number in range(shards)]))

    in_loop(run())


@pytest.mark.parametrize("shards", [1, 3])
def test_whoever_asks_again_is_answered_before_the_loop_goes_on(tmp_path: Path, shards: int) -> None:
    async def test(site: Site) -> None:
        client = Client()
        await site.known(client)
        for turn in range(3):
            lookup = site.begun(client)
            site.say()
            lookup.linger()
            assert len(client.bodies) == turn + 1
        counts = site.figures.counts()
        assert (sum(counts.queries.values()), counts.in_flight) == (4, 0)
        assert not site.lookups._under_way
        assert client.bodies == [BODY] * 3

    at_site(tmp_path, test, shards)


def test_clients_that_ask_in_turn_are_answered_by_the_loop(tmp_path: Path) -> None:
    """It has others to listen to while a shard works."""

    async def test(site: Site) -> None:
        one, other = Client(), Client()
        await site.known(one)
        for turn in range(3):
            for client in (other, one):
                lookup = site.begun(client)
                site.say()
                lookup.linger()
                assert len(client.bodies) == turn
                await site.answered_by_the_loop(client, turn + 1)

    at_site(tmp_path, test)


def test_while_another_is_under_way_the_loop_answers_both(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        client, other = Client(), Client()
        await site.known(other)
        waiting = site.begun(client)
        waiting.linger()
        again = site.begun(client)
        site.say()
        again.linger()
        assert client.bodies == []
        await site.answered_by_the_loop(client, 2)

    at_site(tmp_path, test)


@pytest.mark.parametrize("pieces", [(b"", ANSWER), (ANSWER[:20], ANSWER[20:])], ids=["late", "in pieces"])
def test_what_is_not_there_at_once_is_answered_by_the_loop(tmp_path: Path, pieces: tuple[bytes, bytes]) -> None:
    async def test(site: Site) -> None:
        client = Client()
        await site.known(client)
        lookup = site.begun(client)
        begun, rest = pieces
        if begun:
            site.say(begun)
        lookup.linger()
        assert client.bodies == []
        if begun:
            (connection,) = site.shards[0]._connections
            connection.send(rest)
        else:
            site.say(rest)
        await site.answered_by_the_loop(client, 1)
        assert client.bodies == [BODY]

    at_site(tmp_path, test)


def test_after_each_wait_in_vain_the_loop_answers_for_longer_until_one_is_not(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        client = Client()
        await site.known(client)

        async def is_in_place(*, late: bool = False) -> bool:
            """Whether an answer was waited for."""
            client.bodies.clear()
            lookup = site.begun(client)
            if not late:
                site.say()
            lookup.linger()
            came = bool(client.bodies)
            if late:
                site.say()
            await site.answered_by_the_loop(client, 1)
            return came

        for passed in (4, 8, 16, 32, 64, 128, 256, 256):
            assert not await is_in_place(late=True)
            assert [await is_in_place() for _ in range(passed - 1)] == [False] * (passed - 1)
            # Of the last one nobody knows yet that it would come at once.
            assert not await is_in_place(late=True)
        assert await is_in_place()
        assert not await is_in_place(late=True)
        assert [await is_in_place() for _ in range(5)] == [False] * 4 + [True]

    at_site(tmp_path, test)


def test_while_one_shard_can_not_be_asked_connections_to_the_others_are_kept(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        client = Client()
        await site.known(client)
        site.shards[1].links = LoopLinks(tmp_path / "nobody")
        for _ in range(3):
            assert site.lookups.begin(request(UP), client) is None
        # It accepts whoever is there.
        site.shards[0].say(ANSWER)
        assert len(site.shards[0]._connections) == 1

    at_site(tmp_path, test, 2)


@pytest.mark.parametrize("begun", [b"", ANSWER[:20]], ids=["nothing", "a half"])
def test_what_never_comes_is_given_up(tmp_path: Path, begun: bytes) -> None:
    async def test(site: Site) -> None:
        client = Client()
        await site.known(client)
        # Time for the first one's watch to end: it would see this one, too.
        async with asyncio.timeout(20):
            while site.lookups._looks:
                await asyncio.sleep(0.001)
        lookup = site.begun(client)
        if begun:
            site.say(begun)
        lookup.linger()
        site.clock.sleep(_PATIENCE_S)
        async with asyncio.timeout(20):
            while not client.declined:
                await asyncio.sleep(0.001)
        assert not site.lookups._under_way
        assert site.figures.counts().in_flight == 0

    at_site(tmp_path, test)


@pytest.mark.parametrize("answer", [DECLINED, b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["declined", "no frame"])
def test_what_a_shard_declines_is_passed_on_once(tmp_path: Path, answer: bytes) -> None:
    async def test(site: Site) -> None:
        client = Client()
        await site.known(client)
        lookup = site.begun(client)
        site.say(answer)
        lookup.linger()
        assert (client.bodies, client.declined) == ([], 1)
        assert not site.lookups._under_way
        assert site.figures.counts().in_flight == 0

    at_site(tmp_path, test)


@pytest.mark.parametrize("answer", [ANSWER, DECLINED], ids=["found", "declined"])
def test_a_look_up_is_gone_when_it_is_over(tmp_path: Path, answer: bytes) -> None:
    """Without the collector: to find a thousand of them takes as long as a look-up, and somebody would wait for it."""

    async def test(site: Site) -> None:
        client = Client()
        await site.known(client)
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                lookup = site.begun(client)
                site.say(answer)
                lookup.linger()
                del lookup
            assert len(client.bodies) + client.declined == 3
            assert not [one for one in gc.get_objects() if isinstance(one, ExpressLookup)]
        finally:
            gc.enable()

    at_site(tmp_path, test)
