"""A dataset keeps the shape with which it was created."""

from dataclasses import replace
from itertools import cycle

import pytest

from strandline.store.protocol import Store
from strandline.store.rows import DatasetShape
from support.store_contract import fresh_shard, race

pytestmark = pytest.mark.contract


@pytest.fixture
def shape() -> DatasetShape:
    return DatasetShape(fresh_shard().dataset, flush_interval=3_600_000, groups=16, key_hash="xxh3-128", partitions=8)


def test_a_dataset_that_was_never_created_has_no_shape(store: Store, shape: DatasetShape) -> None:
    assert store.dataset(shape.dataset) is None


def test_a_dataset_has_the_shape_with_which_it_was_created(
    store: Store, other_store: Store, shape: DatasetShape
) -> None:
    assert store.create_dataset(shape) == shape
    assert store.dataset(shape.dataset) == shape
    assert other_store.dataset(shape.dataset) == shape


def test_the_first_creation_of_a_dataset_determines_its_shape(store: Store, shape: DatasetShape) -> None:
    store.create_dataset(shape)
    late = replace(shape, flush_interval=60_000, groups=4, key_hash="other", partitions=9)
    assert store.create_dataset(late) == shape
    assert store.create_dataset(shape) == shape
    assert store.dataset(shape.dataset) == shape


def test_concurrent_creations_of_a_dataset_all_get_the_same_shape(
    store: Store, other_store: Store, shape: DatasetShape
) -> None:
    shapes = [replace(shape, partitions=number) for number in range(1, 9)]
    given = race(lambda here, shape: here.create_dataset(shape), cycle([store, other_store]), shapes)
    assert len(set(given)) == 1
    assert store.dataset(shape.dataset) == given[0]
    assert given[0] in shapes


def test_datasets_are_separate(store: Store, shape: DatasetShape) -> None:
    other = replace(shape, dataset=f"{shape.dataset}-2", groups=1)
    store.create_dataset(shape)
    store.create_dataset(other)
    assert store.dataset(shape.dataset) == shape
    assert store.dataset(other.dataset) == other
