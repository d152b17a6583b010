"""The stores that the suite is run against, and what its tests are given.

To add a store, write a fixture `opened_<name>` that returns an `OpenedStore`, and add its name to
`support.store_contract.IMPLEMENTATIONS`. Only tests of that store request the fixture, so it may start servers.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.clock import ManualClock, SystemClock
from strandline.node.stack import Stack
from strandline.store.protocol import Store
from strandline.store.rows import Lifetime, Ownership, ShardId
from support.cassandra_store import connection_to, open_stores
from support.store_contract import (
    IMPLEMENTATIONS,
    LASTING,
    PRESENT,
    Lives,
    OpenedStore,
    fresh_shard,
    open_memory,
    open_sqlite,
    taken,
)


@pytest.fixture
def opened_sqlite(tmp_path: Path) -> Iterator[OpenedStore]:
    yield from open_sqlite(tmp_path, ManualClock())


@pytest.fixture
def opened_memory() -> Iterator[OpenedStore]:
    yield from open_memory(ManualClock(SystemClock().now_ms()))


@pytest.fixture
def opened_cassandra(stack: Stack) -> Iterator[OpenedStore]:
    yield from open_stores(connection_to(stack, "contract"))


@pytest.fixture(params=IMPLEMENTATIONS)
def opened(request: pytest.FixtureRequest) -> OpenedStore:
    return request.getfixturevalue(f"opened_{request.param}")


@pytest.fixture
def store(opened: OpenedStore) -> Store:
    return opened.store


@pytest.fixture
def other_store(opened: OpenedStore) -> Store:
    """A second store with the same data, as in another process."""
    return opened.open_another()


@pytest.fixture
def shard() -> ShardId:
    """A shard without an owner."""
    return fresh_shard()


@pytest.fixture
def owner(store: Store, shard: ShardId) -> Ownership:
    """The right to write `shard`."""
    return taken(store, shard)


@pytest.fixture
def lives(opened: OpenedStore) -> Lives:
    return opened.lives


@pytest.fixture
def lasting() -> Lifetime:
    """The lifetime of rows that outlast the test."""
    return Lifetime.from_present(PRESENT, LASTING)
