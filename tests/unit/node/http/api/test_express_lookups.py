"""Look-ups that are passed on to the shards as bytes: which requests go that way; and that each is answered once, in
its turn and by somebody, whatever the shards do.
"""

import asyncio
import gc
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.node.http.api.express_lookups import _PATIENCE_S
from strandline.node.http.whole import Whole
from strandline.node.query.asks import LABEL_NAMES, LABEL_VALUES
from strandline.node.query.frames import PLAIN_MAGIC, PREFIX
from strandline.node.query.plain_lookups import DECLINED, lookups_path
from strandline.node.settings.http_sections import HttpSettings
from strandline.node.supervisor.standing import ProcessState, ShardStanding
from support.express_sites import (
    FOUND,
    NAMES_PATH,
    ORDINARY,
    PATH,
    QUESTION,
    UP,
    VALUES_PATH,
    Held,
    Says,
    Site,
    ask,
    at_site,
    body_of,
    found,
    is_listening,
    saying,
    until,
)
from support.http_servers import secret_file
from support.lookup_questions import LookupQuestion
from support.quick_sites import Waiting, request

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("path", "question", "handler", "series"),
    [
        (f"{UP}&start=1&end=2", replace(QUESTION, within=(1000, 2000)), PATH, 3),
        (f"{NAMES_PATH}?match[]=up&limit=5", replace(QUESTION, kind=LABEL_NAMES, limit=5), NAMES_PATH, 0),
        ("/api/v1/label/a.b/values?match[]=up", replace(QUESTION, kind=LABEL_VALUES, label="a.b"), VALUES_PATH, 0),
    ],
)
def test_the_first_request_of_a_connection_goes_the_ordinary_way_and_others_to_the_shards(
    tmp_path: Path, path: str, question: LookupQuestion, handler: str, series: int
) -> None:
    async def test(site: Site) -> None:
        wire = await site.wire()
        assert [await ask(wire, path), await ask(wire, path)] == [FOUND, FOUND]
        assert site.shard.asked == [question, question]
        assert site.ordinary == []
        counts = site.figures.counts()
        assert counts.requests[handler, "200"] == (3 if handler == PATH else 2)
        assert counts.queries == {(question.kind, "answered"): 2}
        assert counts.express_queries == 2
        assert (counts.series, counts.in_flight) == (2 * series, 0)

    at_site(tmp_path, test)


def test_other_header_fields_are_looked_at_first(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        wire = await site.wire()
        asked = [await ask(wire, UP, *fields) for fields in ((), ("X: y",), ("X: y",), (), ())]
        assert asked == [FOUND, ORDINARY, FOUND, ORDINARY, FOUND]

    at_site(tmp_path, test)


def test_tokens_are_asked_for_again_after_each_reload(tmp_path: Path) -> None:
    settings = [HttpSettings(read_token_file=secret_file(tmp_path / name, 20 * name)) for name in "ab"]

    async def test(site: Site) -> None:
        wire = await site.wire(f"Authorization: Bearer {20 * 'a'}")
        for tokens, expected in ((settings[0], ORDINARY), (settings[1], b"the token is not known")):
            assert await ask(wire, UP, f"Authorization: Bearer {20 * 'a'}") == FOUND
            site.serving.server.reload(tokens)
            assert expected in await ask(wire, UP, f"Authorization: Bearer {20 * 'a'}")
        assert len(site.shard.asked) == 2

    at_site(tmp_path, test, settings=settings[0])


def test_over_tls_look_ups_go_the_same_way(tmp_path: Path, encrypted: HttpSettings, trusting: ssl.SSLContext) -> None:
    async def test(site: Site) -> None:
        wire = await site.wire(tls=trusting)
        # The first may have come before aiohttp waited for it, so that its header fields were not looked at.
        await ask(wire)
        assert [await ask(wire), await ask(wire)] == [FOUND, FOUND]
        site.shard.says = saying(DECLINED)
        assert await ask(wire) == ORDINARY
        site.shard.says = saying(found()[:7], found()[7:])
        assert await ask(wire) == FOUND

    at_site(tmp_path, test, settings=encrypted)


def test_where_nobody_has_looked_at_header_fields_it_stays_so(tmp_path: Path) -> None:
    """They are by the quick side alone."""

    async def test(site: Site) -> None:
        wire = await site.wire()
        assert [await ask(wire), await ask(wire)] == [ORDINARY, ORDINARY]

    at_site(tmp_path, test, quick=False)


@pytest.mark.parametrize(
    ("sent", "next_body"),
    [
        (request(UP).replace(b"GET", b"POST"), ORDINARY),
        (request(UP, "Content-Type: text/plain", "Content-Length: 2") + b"{}", ORDINARY),
        (request(UP, "Transfer-Encoding: chunked") + b"0\r\n\r\n", ORDINARY),
        (request(f"{UP}&limit=" + 4096 * "0"), FOUND),
        (request(UP).replace(b"match", b"m%61tch"), FOUND),
        (request(UP)[:-1], ORDINARY),
    ],
)
def test_other_requests_go_the_ordinary_way(tmp_path: Path, sent: bytes, next_body: bytes) -> None:
    """Those behind one that was not as plain, too, unless their header fields are still those of before."""

    async def test(site: Site) -> None:
        wire = await site.wire()
        for _ in range(2):
            wire.writer.write(sent)
            if sent.endswith(b"\r"):
                await site.all_is_here()
                wire.writer.write(b"\n")
            assert (await wire.body()).startswith(ORDINARY)
        assert site.shard.asked == []
        assert await ask(wire) == next_body

    at_site(tmp_path, test)


@pytest.mark.parametrize(("old", "new"), [(b"GET", b"HEAD"), (b"HTTP/1.1", b"HTTP/1.0")])
def test_head_and_old_clients_are_answered_the_ordinary_way(tmp_path: Path, old: bytes, new: bytes) -> None:
    async def test(site: Site) -> None:
        wire = await site.wire()
        wire.writer.write(request(UP).replace(old, new))
        assert b" 200 OK" in await wire.reader.readuntil(b"\r\n\r\n")
        assert site.ordinary == [new.decode() if old == b"GET" else "GET"]
        assert site.shard.asked == []

    at_site(tmp_path, test)


def test_an_answer_that_comes_in_pieces_is_put_together(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        site.shard.says = saying(*(found()[place : place + 7] for place in range(0, len(found()), 7)))
        assert await ask(await site.wire()) == FOUND

    at_site(tmp_path, test)


NO_ANSWERS = {
    "declined": saying(DECLINED),
    "hung-up": saying(then_hang_up=True),
    "half": saying(found()[:20], then_hang_up=True),
    "a-message-of-the-link": saying(PREFIX.pack(b"SLQ1", 0, 0)),
    "with-a-header": saying(PREFIX.pack(PLAIN_MAGIC, 4, 0) + b"abcd"),
    "without-a-number": saying(PREFIX.pack(PLAIN_MAGIC, 0, 3) + b"abc"),
}
# Behind these nothing can be made of what the connection brings.
NO_FRAMES = {
    "no-frame": saying(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "more-than-it-says": saying(found() + b"x"),
    "long": saying(found(bytes(70_000))),
}


@pytest.mark.parametrize("says", [pytest.param(says, id=name) for name, says in {**NO_ANSWERS, **NO_FRAMES}.items()])
@pytest.mark.parametrize("behind", [False, True])
def test_what_a_shard_does_not_answer_is_answered_the_ordinary_way_and_once(
    tmp_path: Path, says: Says, behind: bool
) -> None:
    async def test(site: Site) -> None:
        wire = await site.wire()
        site.shard.says = says
        wire.writer.write(request(UP))
        if behind:
            wire.writer.write(request(f"{UP}&limit=2") + request(f"{UP}&limit=3"))
            assert [await wire.body() for _ in range(3)] == [ORDINARY, ORDINARY + b"2", ORDINARY + b"3"]
            assert site.counted() == (4, 0, 0, 0)
            return
        assert await wire.body() == ORDINARY
        assert site.ordinary == ["GET"]
        assert site.counted() == (2, 0, 0, 0)
        site.shard.says = saying(found())
        assert await ask(wire) == FOUND
        assert site.counted() == (3, 1, 3, 0)

    at_site(tmp_path, test)


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """Nothing is closed because it happens to be found."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("says", [pytest.param(says, id=name) for name, says in NO_FRAMES.items()])
def test_a_connection_that_brought_no_answer_is_closed(tmp_path: Path, says: Says) -> None:
    async def test(site: Site) -> None:
        site.shard.says = says
        assert await ask(await site.wire()) == ORDINARY
        async with asyncio.timeout(2):
            await site.shard.gone.wait()

    at_site(tmp_path, test)


def test_what_takes_long_is_given_up_and_answered_the_ordinary_way(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        wire = await site.wire()
        site.shard.says = Held(found())
        wire.writer.write(request(UP))
        await until(lambda: len(site.shard.asked) == 1)
        site.clock.sleep(_PATIENCE_S * 0.9)
        site.express._look_at_times()
        assert site.counted() == (1, 0, 0, 1)
        site.clock.sleep(_PATIENCE_S * 0.1)
        assert await wire.body() == ORDINARY
        await site.shard.gone.wait()
        assert site.counted() == (2, 0, 0, 0)
        site.shard.says = saying(found())
        assert await ask(wire) == FOUND

    at_site(tmp_path, test)


def test_it_is_given_up_by_itself(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        wire = await site.wire()
        site.shard.says = Held(found())
        wire.writer.write(request(UP))
        await until(lambda: len(site.shard.asked) == 1)
        site.clock.sleep(_PATIENCE_S)
        assert await wire.body() == ORDINARY

    at_site(tmp_path, test)


def test_where_nobody_listens_or_a_shard_is_down_the_ordinary_way_tells(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        wire, running = await site.wire(), site.standing.told
        site.standing.told = (running[0], ShardStanding(1, ProcessState.DOWN))
        assert await ask(wire) == ORDINARY
        assert [shard.asked for shard in site.shards] == [[], []]
        site.standing.told = running
        lookups_path(tmp_path / "1").unlink()
        assert await ask(wire) == ORDINARY
        assert site.shard.asked == [], "it would search in vain"
        assert site.counted() == (3, 0, 0, 0)

    at_site(tmp_path, test, shards=2)


def test_what_several_shards_have_found_is_one_list(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        wire = await site.wire()
        site.shards[0].says = saying(found(b'[{"a":"b"},{"a":"d"}]', 2))
        site.shards[1].says = saying(found(b'[{"a":"c"}]', 1))
        assert await ask(wire) == body_of(b'[{"a":"b"},{"a":"c"},{"a":"d"}]')
        assert site.counted() == (2, 1, 3, 0)
        # One more than are wanted, which is a thing to be told.
        assert await ask(wire, f"{UP}&limit=2") == ORDINARY + b"2"
        for says in NO_ANSWERS.values():
            site.shards[1].says = says
            assert await ask(wire) == ORDINARY
        assert site.counted() == (3 + len(NO_ANSWERS), 1, 3, 0)
        site.shards[1].says = saying(found(b"[]", 0))
        assert await ask(wire) == body_of(b'[{"a":"b"},{"a":"d"}]')

    at_site(tmp_path, test, shards=2)


@pytest.mark.parametrize(("answer", "first"), [(found(), FOUND), (DECLINED, ORDINARY)], ids=["found", "declined"])
@pytest.mark.parametrize("count", [1, 2, 2000])
def test_requests_that_are_sent_behind_one_are_answered_in_their_order(
    tmp_path: Path, answer: bytes, first: bytes, count: int
) -> None:
    """Also more of them than are read before it is answered, and also if the last comes in two parts."""

    async def test(site: Site) -> None:
        wire, held = await site.wire(), Held(answer)
        site.shard.says = held
        wire.writer.write(request(UP))
        await until(lambda: len(site.shard.asked) == 1)
        behind = b"".join(request(f"{UP}&limit={place + 1}") for place in range(count))
        wire.writer.write(behind[:-10] if count > 1 else behind)
        await site.all_is_here()
        site.shard.says = saying(found())
        held.let_go()
        assert await wire.body() == first
        wire.writer.write(behind[-10:] if count > 1 else b"")
        # One alone is as good as the one before it; of many, aiohttp knows where each begins.
        expected = [ORDINARY + str(place + 1).encode() for place in range(count)]
        alone = first == FOUND and count == 1
        assert [await wire.body() for _ in range(count)] == ([FOUND] if alone else expected)
        assert site.counted()[0] == 2 + count + 1
        assert site.counted()[3] == 0

    at_site(tmp_path, test)


def test_what_is_declined_may_be_answered_by_the_quick_side_and_what_came_behind_it_then(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        wire, held, late = await site.wire(), Held(DECLINED), Waiting()
        site.shard.says, site.quick = held, late
        wire.writer.write(request(UP))
        await until(lambda: len(site.shard.asked) == 1)
        wire.writer.write(request(f"{UP}&limit=2"))
        await site.all_is_here()
        held.let_go()
        await late.waits.wait()
        assert site.counted()[3] == 1
        site.shard.says = saying(found())
        late.call()
        assert [await wire.body(), await wire.body()] == [b"late", FOUND]
        site.shard.says, site.quick = saying(DECLINED), Whole(b"quick", is_compressed=False)
        assert await ask(wire) == b"quick"
        assert site.ordinary == []
        assert site.counted() == (5, 1, 3, 0)

    at_site(tmp_path, test)


@pytest.mark.parametrize("behind", [b"", b"GET /", request(UP)])
def test_it_is_given_up_when_the_client_goes_away(tmp_path: Path, behind: bytes) -> None:
    async def test(site: Site) -> None:
        wire = await site.wire()
        site.shard.says = Held(found())
        wire.writer.write(request(UP))
        await until(lambda: len(site.shard.asked) == 1)
        wire.writer.write(behind)
        await site.all_is_here()
        assert site.counted()[3] == 1
        wire.writer.close()
        await site.shard.gone.wait()
        assert site.counted() == (2, 0, 0, 0)
        assert not site.express._under_way
        assert site.ordinary == []

    at_site(tmp_path, test)


@pytest.mark.parametrize(("answer", "body"), [(found(), FOUND), (DECLINED, ORDINARY)], ids=["found", "declined"])
def test_a_server_that_stops_answers_what_is_under_way(tmp_path: Path, answer: bytes, body: bytes) -> None:
    async def test(site: Site) -> None:
        wire, held = await site.wire(), Held(answer)
        site.shard.says = held
        wire.writer.write(request(UP))
        await until(lambda: len(site.shard.asked) == 1)
        stopping = asyncio.create_task(site.serving.server.stop(20.0))
        while await is_listening(site.serving):
            pass
        # Whoever did not wait for it would have closed the connection by then.
        for _ in range(20):
            await asyncio.sleep(0)
        assert not stopping.done()
        held.let_go()
        assert await wire.body() == body
        await stopping
        assert await wire.reader.read() == b""
        assert site.counted()[3] == 0

    at_site(tmp_path, test)
