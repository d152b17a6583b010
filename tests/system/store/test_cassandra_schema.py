"""Missing tables are created, by any number of nodes at once, and used only if their version is known."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from cassandra.cluster import Session

from strandline.clock import SystemClock
from strandline.node.stack import Stack
from strandline.store.cassandra.schema import MIN_VERSION, VERSION, definitions
from strandline.store.cassandra.schema import _file as statements_of_file
from strandline.store.cassandra.store import CassandraStore, open_cassandra_store
from strandline.store.connection import CassandraConnection, CassandraRefused, connect
from strandline.store.protocol import StoreRefused
from support.cassandra_store import COPIES, Lost, connection_to, open_lossy
from support.store_contract import fresh_shard, taken

pytestmark = pytest.mark.system


@pytest.fixture
def fresh(stack: Stack) -> CassandraConnection:
    """A keyspace that does not exist yet."""
    return connection_to(stack, f"schema_{uuid.uuid4().hex}")


def opened(connection: CassandraConnection) -> CassandraStore:
    return open_cassandra_store(connection, SystemClock(), copies=COPIES)


def connected(connection: CassandraConnection) -> Session:
    session = connect(connection)
    session.set_keyspace(connection.keyspace)
    return session


def test_a_keyspace_is_only_created_with_a_replication_factor(fresh: CassandraConnection) -> None:
    with pytest.raises(CassandraRefused, match=f"no keyspace '{fresh.keyspace}'"):
        open_cassandra_store(fresh, SystemClock())
    opened(fresh).close()
    with closing(open_cassandra_store(fresh, SystemClock())) as store:
        assert store.state(fresh_shard()) is None


def test_many_nodes_that_start_at_once_create_the_tables_once(fresh: CassandraConnection) -> None:
    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(opened, [fresh] * 4))
    try:
        shard = fresh_shard()
        for store in stores:
            taken(store, shard)
        assert all(store.state(shard) == stores[0].state(shard) for store in stores)
    finally:
        for store in stores:
            store.close()
    session = connected(fresh)
    try:
        rows = list(session.execute("SELECT product, version, written_version FROM schema_version"))
        assert set(session.cluster.metadata.keyspaces[fresh.keyspace].tables) == set(definitions())
    finally:
        session.cluster.shutdown()
    assert [tuple(row) for row in rows] == [("strandline", MIN_VERSION, VERSION)]


def test_a_later_start_changes_no_table(fresh: CassandraConnection) -> None:
    opened(fresh).close()
    store, session = open_lossy(fresh)
    store.close()
    assert session.count("CREATE TABLE") == session.count("ALTER TABLE") == 0


def test_a_missing_table_is_recreated(fresh: CassandraConnection) -> None:
    opened(fresh).close()
    session = connected(fresh)
    session.execute("DROP TABLE jobs")
    session.cluster.shutdown()
    with closing(opened(fresh)) as store:
        assert store.jobs(fresh_shard()) == []


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (VERSION + 1, f"need at least schema version {VERSION + 1}, and this Strandline has version {VERSION}"),
        (0, "have schema version 0, which no released Strandline"),
    ],
)
def test_tables_of_an_unknown_version_are_refused_and_not_changed(
    fresh: CassandraConnection, version: int, message: str
) -> None:
    opened(fresh).close()
    session = connected(fresh)
    try:
        session.execute(
            "UPDATE schema_version SET version = %s WHERE product = 'strandline' IF version = %s",
            (version, MIN_VERSION),
        )
        session.execute("DROP TABLE jobs")
        with pytest.raises(StoreRefused, match=message):
            opened(fresh)
        session.cluster.refresh_keyspace_metadata(fresh.keyspace)
        assert set(session.cluster.metadata.keyspaces[fresh.keyspace].tables) == set(definitions()) - {"jobs"}
    finally:
        session.cluster.shutdown()


def test_cqlsh_accepts_the_file_of_tables(fresh: CassandraConnection) -> None:
    session = connect(fresh, require_keyspace=False)
    try:
        replication = {"class": "SimpleStrategy", "replication_factor": 1}
        session.execute(f"CREATE KEYSPACE {fresh.keyspace} WITH replication = {replication}")
        session.set_keyspace(fresh.keyspace)
        for statement in filter(None, statements_of_file()):
            session.execute(statement)
    finally:
        session.cluster.shutdown()
    with closing(open_cassandra_store(fresh, SystemClock())) as store:
        taken(store, fresh_shard())


def test_a_lost_answer_to_the_creation_of_tables_is_tolerated(fresh: CassandraConnection) -> None:
    opened(fresh).close()
    session = connected(fresh)
    session.execute("DROP TABLE schema_version")
    session.execute("DROP TABLE jobs")
    session.cluster.shutdown()
    store, _ = open_lossy(
        fresh, losses={"CREATE TABLE": [Lost(applied=True), Lost(applied=False)], "INSERT": [Lost(applied=True)]}
    )
    with closing(store):
        taken(store, fresh_shard())
