"""A dataset belongs to one data centre: nodes connected to different ones would each have their own owners."""

from collections.abc import Callable

import pytest
from cassandra import ConsistencyLevel

from strandline.store.cassandra.statements import ALL, Kind
from strandline.store.cassandra.store import CassandraStore
from strandline.store.protocol import StoreRefused
from strandline.store.rows import DatasetShape, Lifetime, ShardId
from support.cassandra_store import LossySession
from support.store_contract import job, race, taken

pytestmark = pytest.mark.system


@pytest.fixture
def shape(shard: ShardId) -> DatasetShape:
    return DatasetShape(shard.dataset, 3_600_000, 16, "xxh3-128", 8)


def data_centre(session: LossySession, shape: DatasetShape) -> str | None:
    found = session.execute("SELECT data_centre FROM store_tests.datasets WHERE dataset = %s", (shape.dataset,)).one()
    return found.data_centre if found is not None else None


def move(session: LossySession, shape: DatasetShape, where: str | None) -> None:
    """Like an operator."""
    found = session.execute(
        "UPDATE store_tests.datasets SET data_centre = %s WHERE dataset = %s IF data_centre = 'datacenter1'",
        (where, shape.dataset),
    ).one()
    assert found.applied


def test_a_dataset_belongs_to_the_data_centre_of_its_first_start(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, shape: DatasetShape
) -> None:
    assert store.create_dataset(shape) == shape
    assert data_centre(session, shape) == "datacenter1"
    assert other_store.create_dataset(shape) == shape
    assert other_store.dataset(shape.dataset) == shape


def test_the_next_start_sets_the_data_centre_of_a_dataset_of_version_2(
    store: CassandraStore, session: LossySession, other_store: CassandraStore, shape: DatasetShape
) -> None:
    store.create_dataset(shape)
    move(session, shape, None)
    assert store.dataset(shape.dataset) == shape
    assert data_centre(session, shape) is None, "reading writes nothing"
    assert race(lambda store: store.create_dataset(shape), [store, other_store]) == [shape, shape]
    assert data_centre(session, shape) == "datacenter1"


@pytest.mark.parametrize(
    "call",
    [
        lambda store, shape, _: store.create_dataset(shape),
        lambda store, shape, _: store.dataset(shape.dataset),
        lambda store, shape, _: taken(store, ShardId(shape.dataset, 0)),
        lambda store, shape, life: store.add_job(job(ShardId(shape.dataset, 0), 1, life)),
        lambda store, shape, life: store.replace_job(*[job(ShardId(shape.dataset, 0), 1, life)] * 2),
        lambda store, shape, life: store.remove_job(job(ShardId(shape.dataset, 0), 1, life)),
    ],
    ids=["create", "look", "take", "add a job", "replace a job", "remove a job"],
)
def test_a_store_in_another_data_centre_is_refused_and_both_are_named(
    lossy: tuple[CassandraStore, LossySession],
    other_store: CassandraStore,
    shape: DatasetShape,
    lasting: Lifetime,
    call: Callable[[CassandraStore, DatasetShape, Lifetime], object],
) -> None:
    store, session = lossy
    other_store.create_dataset(shape)
    move(session, shape, "elsewhere")
    with pytest.raises(StoreRefused, match=r"'elsewhere'.*'datacenter1'.*local_datacenter to 'elsewhere'"):
        call(store, shape, lasting)
    shard = ShardId(shape.dataset, 0)
    assert (store.state(shard), store.jobs(shard)) == (None, [])


def test_only_the_data_centre_of_a_dataset_is_decided_by_all_data_centres(store: CassandraStore) -> None:
    """Everything else must work while another data centre is unavailable."""
    levels = {
        statement.cql: store._requests._prepared[statement].serial_consistency_level
        for statement in ALL
        if statement.kind is Kind.CONDITIONAL
    }
    everywhere = [cql for cql, level in levels.items() if level == ConsistencyLevel.SERIAL]
    assert len(everywhere) == 2
    assert all("data_centre" in cql for cql in everywhere)
    assert {level for cql, level in levels.items() if cql not in everywhere} == {None}, "the session's, LOCAL_SERIAL"


def test_a_known_dataset_is_not_read_again(
    store: CassandraStore, session: LossySession, shape: DatasetShape, lasting: Lifetime
) -> None:
    store.create_dataset(shape)
    reads = session.count("SELECT dataset")
    shard = ShardId(shape.dataset, 0)
    taken(store, shard)
    for bucket in range(5):
        store.add_job(job(shard, bucket, lasting))
    assert session.count("SELECT dataset") == reads
