"""A start on tables that a node of schema version 2 wrote: they are migrated beside it, and everything is found."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from cassandra.cluster import Session

from strandline.clock import SystemClock
from strandline.node.stack import Stack
from strandline.store.cassandra.schema import VERSION, additions
from strandline.store.cassandra.store import open_cassandra_store
from strandline.store.connection import CassandraConnection, connect
from support import version_2
from support import version_2_history as history
from support.cassandra_store import connection_to
from support.shard_world import FaultyStore, World

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def connection(stack: Stack) -> CassandraConnection:
    return connection_to(stack, f"migration_{uuid.uuid4().hex}")


@pytest.fixture(scope="module")
def session(connection: CassandraConnection) -> Iterator[Session]:
    """In a keyspace with the tables and rows of version 2, as several nodes that start at once have migrated it."""
    session = connect(connection, require_keyspace=False)
    try:
        version_2.load_cassandra(session, connection.keyspace)
        # What runs meanwhile: these were prepared before anything was added.
        prepared = [session.prepare(statement) for statement in version_2.statements()]
        with ThreadPoolExecutor(3) as threads:
            for store in threads.map(lambda _: open_cassandra_store(connection, SystemClock()), range(3)):
                store.close()
        assert len(prepared) > 20
        read_state = next(one for one in prepared if one.query_string.startswith("SELECT DISTINCT"))
        assert session.execute(read_state, ("metrics", 0)).one().epoch == 2
        yield session
    finally:
        session.cluster.shutdown()


@pytest.fixture
def world(session: Session, connection: CassandraConnection, tmp_path: Path) -> Iterator[World]:
    """The tables, and the log that they were made from."""
    assert session is not None
    with closing(World(tmp_path)) as world:
        world.sqlite.close()
        world.sqlite = open_cassandra_store(connection, world.clock)
        world.store = FaultyStore(world.sqlite)
        history.produce_all(world)
        yield world


def test_everything_is_read_and_a_shard_goes_on_where_the_one_of_version_2_ended(world: World) -> None:
    history.check_read(world)
    history.check_goes_on(world)


def test_a_node_of_version_2_may_restart_meanwhile(session: Session) -> None:
    """It takes its own version and no other, and prepares its statements."""
    found = session.execute("SELECT version, written_version FROM schema_version WHERE product = 'strandline'").one()
    assert tuple(found) == (2, VERSION)
    for statement in version_2.statements():
        session.prepare(statement)


def test_each_column_was_added_once_and_a_later_start_adds_none(
    session: Session, connection: CassandraConnection
) -> None:
    keyspace = session.cluster.metadata.keyspaces[connection.keyspace]
    session.cluster.refresh_keyspace_metadata(connection.keyspace)
    before = {table: list(made.columns) for table, made in keyspace.tables.items()}
    assert all(one.column in before[one.table] for one in additions())
    open_cassandra_store(connection, SystemClock()).close()
    session.cluster.refresh_keyspace_metadata(connection.keyspace)
    tables = session.cluster.metadata.keyspaces[connection.keyspace].tables
    assert {table: list(made.columns) for table, made in tables.items()} == before


def test_jobs_are_there_for_a_node_of_version_2(session: Session, connection: CassandraConnection) -> None:
    """It leaves out a job whose date has passed, and makes a time-to-live of the date, of at most 20 years."""
    with closing(open_cassandra_store(connection, SystemClock())) as store:
        shard = history.SHARD
        job = history.a_job(shard, bucket=3_000)
        assert store.add_job(job)
        row = session.execute(
            "SELECT expires FROM jobs WHERE dataset = 'metrics' AND shard = 0 AND bucket = 3000"
        ).one()
        assert store.remove_job(job)
    left = row.expires - SystemClock().now_ms()
    assert 0 < left < 20 * 365 * 86_400_000
