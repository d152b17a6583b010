"""The stores that the suite is run against, and what its tests are given.

To add a store, write a fixture `opened_<name>` that gives an `OpenedStore`, and add its name to `IMPLEMENTATIONS`. The
fixture is only asked for by tests of that store, so it may start servers.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from strandline.clock import Clock, ManualClock
from strandline.node.stack import Stack
from strandline.store.protocol import Store
from strandline.store.rows import Ownership, ShardId
from strandline.store.sqlite import open_sqlite_store
from support.cassandra_store import connection_to, open_stores, running_cassandra
from support.store_contract import Lives, OpenedStore, fresh_shard, taken

IMPLEMENTATIONS = ("sqlite", "cassandra")


def open_sqlite(folder: Path, clock: Clock) -> Iterator[OpenedStore]:
    """A store in a file of its own; `clock` decides what has expired."""
    with ExitStack() as opened:

        def open_another() -> Store:
            return opened.enter_context(closing(open_sqlite_store(folder / "store.sqlite", clock)))

        yield OpenedStore(open_another(), clock, open_another)


@pytest.fixture
def opened_sqlite(tmp_path: Path) -> Iterator[OpenedStore]:
    yield from open_sqlite(tmp_path, ManualClock())


@pytest.fixture(scope="session")
def cassandra(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    # As shipped, Cassandra 5 still lets nothing live beyond January 2038, for the sake of version 4.
    yield from running_cassandra(tmp_path_factory.mktemp("cassandra"), {"storage_compatibility_mode": "NONE"})


@pytest.fixture
def opened_cassandra(cassandra: Stack) -> Iterator[OpenedStore]:
    yield from open_stores(connection_to(cassandra, "contract"))


@pytest.fixture(params=IMPLEMENTATIONS)
def opened(request: pytest.FixtureRequest) -> OpenedStore:
    return request.getfixturevalue(f"opened_{request.param}")


@pytest.fixture
def store(opened: OpenedStore) -> Store:
    return opened.store


@pytest.fixture
def other_store(opened: OpenedStore) -> Store:
    """A second store onto the same data, as another process has it."""
    return opened.open_another()


@pytest.fixture
def shard() -> ShardId:
    """A shard that nobody has taken."""
    return fresh_shard()


@pytest.fixture
def owner(store: Store, shard: ShardId) -> Ownership:
    """The right to write `shard`."""
    return taken(store, shard)


@pytest.fixture
def lives(opened: OpenedStore) -> Lives:
    return Lives(opened.clock)


@pytest.fixture
def lasting(lives: Lives) -> int:
    """When rows expire that outlast the test."""
    return lives.lasting()
