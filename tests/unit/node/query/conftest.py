"""A link, with a shard at its other end that answers as the test says."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.node.query.link_client import LinkClient
from strandline.node.query.link_server import LinkServer
from support.links import CLOCK, Service


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.page.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "socket"


@pytest.fixture
def server(service: Service, path: Path) -> Iterator[LinkServer]:
    with LinkServer(path, service, CLOCK) as made:
        yield made


@pytest.fixture
def client(path: Path) -> Iterator[LinkClient]:
    with closing(LinkClient(path, 3, CLOCK)) as made:
        yield made
