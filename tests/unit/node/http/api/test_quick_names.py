"""Look-ups that the event loop asks itself, over links to shards, and lists that it keeps."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from strandline.node.http.api.express_lookups import ExpressLookups
from strandline.node.metrics.counted_queries import CountedQueries
from strandline.node.metrics.front_figures import FrontFigures
from strandline.node.query.asks import LabelNamesAsk
from strandline.node.shard.status import Phase
from strandline.node.supervisor.standing import ProcessState, ShardStanding
from support.http_servers import Served, api_served, in_loop
from support.query_worlds import NodeWorld, node_world
from support.shard_world import HOUR, POLICY

pytestmark = pytest.mark.unit

VALUES = "/api/v1/label/name/values"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeWorld]:
    with node_world(tmp_path, shards=2, linked=True, policy=replace(POLICY, retention=100 * HOUR)) as made:
        for number, world in enumerate(made.worlds):
            produce(made, number, f"from-{number}")
            world.settle()
        yield made


def produce(node: NodeWorld, shard: int, name: str) -> None:
    world = node.worlds[shard]
    world.produce(("m0", name, world.clock.now_ms(), 1.0))
    world.read_all()


def asked(node: NodeWorld, test: Callable[[Callable[..., Awaitable[Any]]], Awaitable[None]]) -> dict[str, int]:
    """Ask as the test does; how often a list of values was asked for, by what came of it."""
    figures = FrontFigures(node.clock)
    counted = CountedQueries(node.queries, figures)

    async def run() -> None:
        express = ExpressLookups(node.queries, figures, node.clock, 1000)
        async with api_served(counted, quick=counted, express=express) as serving:
            await test(lambda path, **parameters: told(serving, path, **parameters))

    in_loop(run())
    return {outcome: count for (ask, outcome), count in figures.counts().queries.items() if ask == "label-values"}


async def told(serving: Served, path: str, **parameters: str) -> Any:
    reply = await serving.get(path, params=parameters)
    assert reply.status == 200, reply.body
    content = orjson.loads(reply.body)
    return content["data"] if "warnings" not in content else (content["data"], content["warnings"])


def test_a_list_is_asked_for_once_and_again_when_there_is_something_new(node: NodeWorld) -> None:
    async def test(ask: Callable[..., Awaitable[Any]]) -> None:
        assert await ask(VALUES) == ["from-0", "from-1"]
        node.tell()
        for _ in range(3):
            assert await ask(VALUES) == ["from-0", "from-1"]
        produce(node, 1, "new")
        node.tell()
        for _ in range(2):
            assert await ask(VALUES) == ["from-0", "from-1", "new"]

    # Once before the shards told of an edition, once for each of the two.
    assert asked(node, test) == {"answered": 3, "kept": 3}


def test_a_range_that_lacks_a_series_is_asked_for(node: NodeWorld) -> None:
    now = node.worlds[0].clock.now_ms()

    async def test(ask: Callable[..., Awaitable[Any]]) -> None:
        await ask(VALUES)
        node.tell()
        assert await ask(VALUES, end=str(now // 1000 + HOUR)) == ["from-0", "from-1"]
        assert await ask(VALUES, end=str(now // 1000 - HOUR)) == []
        assert await ask(VALUES, start=str(now // 1000)) == ["from-0", "from-1"]

    assert asked(node, test) == {"answered": 3, "kept": 1}


def test_a_list_with_a_selector_is_asked_for_each_time(node: NodeWorld) -> None:
    async def test(ask: Callable[..., Awaitable[Any]]) -> None:
        await ask(VALUES)
        node.tell()
        for _ in range(2):
            assert await ask(VALUES, **{"match[]": '{name="from-1"}'}) == ["from-1"]
            assert await ask("/api/v1/labels", **{"match[]": '{name="from-1"}'}) == ["__name__", "name"]
            assert await ask("/api/v1/series", **{"match[]": '{name="from-1"}'}) == [
                {"__name__": "m0", "name": "from-1"}
            ]

    assert asked(node, test) == {"answered": 3}


def test_a_list_that_was_cut_off_is_another_one(node: NodeWorld) -> None:
    async def test(ask: Callable[..., Awaitable[Any]]) -> None:
        await ask(VALUES)
        node.tell()
        assert await ask(VALUES) == ["from-0", "from-1"]
        data, (warning,) = await ask(VALUES, limit="1")
        assert data == ["from-0"]
        assert "more than the 1" in warning
        assert await ask(VALUES) == ["from-0", "from-1"]

    asked(node, test)


def test_a_shard_that_falls_behind_is_asked_and_warns(node: NodeWorld) -> None:
    async def test(ask: Callable[..., Awaitable[Any]]) -> None:
        await ask(VALUES)
        node.tell()
        assert await ask(VALUES) == ["from-0", "from-1"]
        node.worlds[1].status.phase = Phase.CATCHING_UP
        node.tell()
        for _ in range(2):
            data, (warning,) = await ask(VALUES)
            assert data == ["from-0", "from-1"]
            assert "shard 1 is catching up" in warning

    assert asked(node, test) == {"answered": 2, "warned": 2}


def test_a_shard_without_a_standing_keeps_nothing(node: NodeWorld) -> None:
    """A shard that is served and has no link yet lacks in every list."""
    node.tell()
    node.clients.pop(0)
    assert node.queries.edition() is None


def test_errors_come_as_they_do_from_threads(node: NodeWorld) -> None:
    async def test(ask: Callable[..., Awaitable[Any]]) -> None:
        await ask(VALUES)
        for world in node.worlds:
            world.status.phase = Phase.FENCED
        with pytest.raises(AssertionError, match="belongs to another owner"):
            await ask(VALUES)

    assert asked(node, test) == {"answered": 1, "unavailable": 1}


def test_a_list_that_lacks_what_has_just_ended_is_not_kept_as_that_of_all(node: NodeWorld) -> None:
    """Keys end when a bucket is cut, which is told only after the step that did it."""
    begun = node.worlds[0].clock.now_ms()

    async def test(ask: Callable[..., Awaitable[Any]]) -> None:
        await ask("/api/v1/labels")
        node.tell()
        for world in node.worlds:
            world.clock.sleep(4 * HOUR / 1000)
        produce(node, 0, "from-0")
        produce(node, 1, "from-0")
        later = str(begun // 1000 + HOUR // 1000)
        assert await ask(VALUES, start=later) == ["from-0"]
        assert await ask(VALUES) == ["from-0", "from-1"]

    asked(node, test)


def test_a_list_with_nothing_in_it_is_not_kept(node: NodeWorld) -> None:
    async def test(ask: Callable[..., Awaitable[Any]]) -> None:
        await ask(VALUES)
        node.tell()
        for _ in range(2):
            assert await ask("/api/v1/label/nobody_has_it/values") == []

    assert asked(node, test) == {"answered": 3}


def test_a_shard_that_has_ended_keeps_nothing(node: NodeWorld) -> None:
    node.tell()
    for number, client in node.clients.items():
        client.begin(LabelNamesAsk((), None, 1), node.give()).answer()
        node.services[number].tell()
    assert node.queries.edition() is not None
    node.standing.standings[1] = ShardStanding(1, ProcessState.WAITING)
    assert node.queries.edition() is None


def test_few_series_of_one_shard_are_put_together_with_many_of_another(node: NodeWorld) -> None:
    """Few are told as JSON and many as columns; threads ask for columns alone."""
    for number in range(30):
        produce(node, 0, f"more-{number:02}")
    for number in range(3):
        produce(node, 1, f"more-{number:02}")
        produce(node, 1, f"other-{number:02}")
    node.tell()

    async def run() -> None:
        express = ExpressLookups(node.queries, FrontFigures(node.clock), node.clock, 1000)
        async with (
            api_served(node.queries, quick=node.queries, express=express) as quick,
            api_served(node.queries) as ordinary,
        ):
            for selector in (
                '{__name__="m0"}',
                '{name=~"more-0[0-3]|other-01"}',
                '{name="more-02"}',
                '{name="nobody"}',
            ):
                for path in ("/api/v1/series", "/api/v1/labels", "/api/v1/label/name/values", "/api/v1/label/x/values"):
                    for limit in ("0", "1", "3", "25"):
                        parameters = {"match[]": selector, "limit": limit}
                        told_quickly = await quick.get(path, params=parameters)
                        told_by_threads = await ordinary.get(path, params=parameters)
                        assert orjson.loads(told_quickly.body) == orjson.loads(told_by_threads.body), parameters

    in_loop(run())
