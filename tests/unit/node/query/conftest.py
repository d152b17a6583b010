"""A link, with a shard at its other end that answers as the test says; and a shard of a world that answers itself."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.node.query.link_server import LinkServer
from strandline.node.query.shard_answers import ShardAnswers
from support.links import CLOCK, LOOPS, LinkClient, Loop, Service
from support.query_worlds import LiveWorld, LuceneWorld
from support.shard_world import HOUR, POLICY


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "socket"


@pytest.fixture
def service(path: Path) -> Iterator[Service]:
    made = Service(path)
    yield made
    made.page.close()


@pytest.fixture
def server(service: Service, path: Path) -> Iterator[LinkServer]:
    with LinkServer(path, service, CLOCK) as made:
        yield made


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Iterator[Loop]:
    """That of production, and Python's own."""
    with closing(Loop(request.param)) as made:
        yield made


@pytest.fixture
def linked(path: Path, loop: Loop) -> Iterator[LinkClient]:
    with closing(LinkClient(path, loop)) as made:
        yield made


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LuceneWorld]:
    policy = replace(POLICY, retention=100 * HOUR)
    with closing(LuceneWorld(tmp_path, policy=policy, series_limit=10_000)) as made:
        made.start()
        yield made


@pytest.fixture
def answers(world: LuceneWorld) -> Iterator[ShardAnswers]:
    with closing(ShardAnswers(LiveWorld(world))) as made:
        yield made
