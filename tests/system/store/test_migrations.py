"""A start on tables of an older schema version migrates them while older nodes run, and finds everything."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from cassandra.cluster import Session

from strandline.clock import SystemClock
from strandline.node.stack import Stack
from strandline.store.cassandra.schema import VERSION, additions, definitions
from strandline.store.cassandra.store import open_cassandra_store
from strandline.store.connection import CassandraConnection, connect
from support import older_history as history
from support import older_stores
from support.cassandra_store import connection_to
from support.shard_world import FaultyStore, World

pytestmark = pytest.mark.system


@pytest.fixture(scope="module", params=older_stores.VERSIONS, ids=lambda version: f"version_{version}")
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def connection(stack: Stack, version: int) -> CassandraConnection:
    return connection_to(stack, f"migration_{version}_{uuid.uuid4().hex}")


@pytest.fixture(scope="module")
def session(connection: CassandraConnection, version: int) -> Iterator[Session]:
    """A session in a keyspace with the tables and rows of a version, migrated by several nodes that start at once."""
    session = connect(connection, require_keyspace=False)
    try:
        older_stores.load_cassandra(session, connection.keyspace, version)
        # Statements of nodes that run meanwhile: prepared before anything was added.
        prepared = [session.prepare(statement) for statement in older_stores.statements(version)]
        with ThreadPoolExecutor(3) as threads:
            for store in threads.map(lambda _: open_cassandra_store(connection, SystemClock()), range(3)):
                store.close()
        assert len(prepared) > 20
        read_state = next(statement for statement in prepared if statement.query_string.startswith("SELECT DISTINCT"))
        assert session.execute(read_state, ("metrics", 0)).one().epoch == 2
        yield session
    finally:
        session.cluster.shutdown()


@pytest.fixture
def world(session: Session, connection: CassandraConnection, tmp_path: Path) -> Iterator[World]:
    """The tables, and the log from which they were written."""
    assert session is not None
    with closing(World(tmp_path)) as world:
        world.sqlite.close()
        world.sqlite = open_cassandra_store(connection, world.clock)
        world.store = FaultyStore(world.sqlite)
        history.produce_all(world)
        yield world


def test_everything_is_read_and_a_shard_continues_where_the_older_one_ended(world: World, version: int) -> None:
    history.check_read(world, version)
    history.check_continues(world)
    history.check_bulk_jobs(world.sqlite)


def test_an_older_node_may_restart_meanwhile(session: Session, version: int) -> None:
    """A node of version 2 accepts only its own version, a node of version 3 those from 2 up to its own. Both prepare
    their statements, and do not change a higher stored version.
    """
    found = session.execute("SELECT version, written_version FROM schema_version WHERE product = 'strandline'").one()
    assert tuple(found) == (2, VERSION)
    for statement in older_stores.statements(version):
        session.prepare(statement)


def columns(session: Session, keyspace: str) -> dict[str, set[str]]:
    """Columns by table, according to the server."""
    found: dict[str, set[str]] = {}
    chosen = "SELECT table_name, column_name FROM system_schema.columns WHERE keyspace_name = %s"
    for table, column in session.execute(chosen, (keyspace,)):
        found.setdefault(table, set()).add(column)
    return found


def test_each_table_and_column_was_added_once_and_a_later_start_adds_none(
    session: Session, connection: CassandraConnection
) -> None:
    before = columns(session, connection.keyspace)
    assert set(before) == set(definitions())
    assert all(addition.column in before[addition.table] for addition in additions())
    open_cassandra_store(connection, SystemClock()).close()
    assert columns(session, connection.keyspace) == before


def test_a_node_of_version_2_reads_the_jobs(session: Session, connection: CassandraConnection) -> None:
    """It ignores a job whose date has passed, and converts the date to a time-to-live of at most 20 years."""
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
