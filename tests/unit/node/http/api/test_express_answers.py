"""Look-ups that are passed on as bytes: what their clients get, how many there may be, and what is told of them."""

import gzip
import logging
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from strandline.node.http import connections
from strandline.node.http.api.express_lookups import _MOST
from strandline.node.http.api.sending import whole_list
from strandline.node.query.plain_lookups import DECLINED
from support.express_sites import (
    FOUND,
    ORDINARY,
    PATH,
    UP,
    Held,
    Site,
    ask,
    at_site,
    body_of,
    found,
    saying,
    until,
)
from support.quick_sites import request

pytestmark = pytest.mark.unit


def test_a_long_answer_is_compressed_for_whoever_accepts_that(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        long = b"[%s]" % b",".join(b'"%d"' % place for place in range(2000))
        site.shard.says = saying(found(long))
        assert gzip.decompress(await ask(await site.wire("Accept-Encoding: gzip"), UP, "Accept-Encoding: gzip")) == (
            body_of(long)
        )
        assert await ask(await site.wire()) == body_of(long)

    at_site(tmp_path, test)


@pytest.mark.parametrize("fields", [(), ("Accept-Encoding: gzip",)])
@pytest.mark.parametrize("size", [2, 20_000])
def test_an_answer_is_byte_by_byte_that_of_the_quick_side(tmp_path: Path, fields: tuple[str, ...], size: int) -> None:
    async def test(site: Site) -> None:
        wire, text, answers = await site.wire(*fields), b"[%s]" % (b" " * size), []
        site.shard.says = saying(found(text))
        site.quick = whole_list(text, gzip=bool(fields))
        for is_open in (True, False):
            site.express.is_open = is_open
            wire.writer.write(request(UP, *fields))
            head = await wire.reader.readuntil(b"\r\n\r\n")
            answers.append((head, await wire.reader.readexactly(len(site.quick.body))))
        assert answers[0] == answers[1]
        assert len(site.shard.asked) == 1

    at_site(tmp_path, test)


def test_only_so_many_are_under_way_at_a_time(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        wires, held = [await site.wire() for _ in range(_MOST + 1)], Held(found())
        site.shard.says = held
        for wire in wires[:-1]:
            wire.writer.write(request(UP))
        await until(lambda: len(site.shard.asked) == _MOST)
        assert site.counted()[3] == _MOST
        assert await ask(wires[-1]) == ORDINARY
        site.clock.sleep(0.03)
        held.let_go()
        assert [await wire.body() for wire in wires[:-1]] == [FOUND] * _MOST
        site.shard.says = saying(found())
        assert await ask(wires[-1]) == FOUND
        assert site.counted()[3] == 0
        assert site.figures.counts().seconds[PATH].total == pytest.approx(_MOST * 0.03)

    at_site(tmp_path, test)


def test_until_it_is_open_all_goes_the_ordinary_way(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        wire = await site.wire()
        site.express.is_open = False
        assert await ask(wire) == ORDINARY
        site.express.is_open = True
        assert await ask(wire) == FOUND

    at_site(tmp_path, test)


def test_each_request_is_in_the_access_log_once_and_without_its_query(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(site: Site) -> None:
        wire = await site.wire()
        assert await ask(wire, f"{PATH}?match[]=secret") == FOUND
        site.shard.says = saying(DECLINED)
        assert await ask(wire, f"{PATH}?match[]=secret") == ORDINARY

    with caplog.at_level(logging.DEBUG, connections.__name__), capture_logs() as logs:
        at_site(tmp_path, test)
    lines = [line for line in logs if line["event"] == "request"]
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [("GET", PATH, 200)] * 3
    assert lines[1]["bytes"] == len(FOUND)
    assert {line["remote"] for line in lines} == {"127.0.0.1"}
    assert "secret" not in str(lines)
