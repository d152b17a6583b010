"""A store over the shared Cassandra, whose requests can be lost."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from strandline.clock import SystemClock
from strandline.node.stack import Stack
from strandline.store.cassandra.store import CassandraStore, open_cassandra_store
from strandline.store.connection import CassandraConnection
from strandline.store.rows import Lifetime, ShardId
from support.cassandra_store import COPIES, LossySession, connection_to, open_lossy
from support.store_contract import LASTING, PRESENT, fresh_shard


@pytest.fixture
def connection(stack: Stack) -> CassandraConnection:
    return connection_to(stack, "store_tests")


@pytest.fixture
def lossy(connection: CassandraConnection) -> Iterator[tuple[CassandraStore, LossySession]]:
    store, session = open_lossy(connection)
    with closing(store):
        yield store, session


@pytest.fixture
def store(lossy: tuple[CassandraStore, LossySession]) -> CassandraStore:
    return lossy[0]


@pytest.fixture
def session(lossy: tuple[CassandraStore, LossySession]) -> LossySession:
    """The session through which `store` sends its requests."""
    return lossy[1]


@pytest.fixture
def other_store(connection: CassandraConnection) -> Iterator[CassandraStore]:
    """A second store on the same data, without losses."""
    with closing(open_cassandra_store(connection, SystemClock(), copies=COPIES)) as store:
        yield store


@pytest.fixture
def shard() -> ShardId:
    return fresh_shard()


@pytest.fixture
def lasting() -> Lifetime:
    return Lifetime.from_present(PRESENT, LASTING)
