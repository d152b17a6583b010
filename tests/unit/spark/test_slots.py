"""Numbers by which Spark puts each unit into a separate task."""

import pytest

from strandline.spark.shuffle_slots import shuffle_slots, spark_hash

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("number", "hashed"), [(0, 933_211_791), (1, -559_580_957), (2, 1_765_031_574)])
def test_numbers_are_hashed_as_sparks_sql_function_does(number: int, hashed: int) -> None:
    """From Spark: `SELECT hash(0), hash(1), hash(2)`."""
    assert spark_hash(number) == hashed % 2**32


@pytest.mark.parametrize("partitions", [1, 2, 7, 200])
def test_each_partition_has_a_number_that_no_other_has(partitions: int) -> None:
    found = shuffle_slots(partitions)
    assert len(set(found)) == len(found) == partitions
    for partition, number in enumerate(found):
        hashed = spark_hash(number)
        assert (hashed - 2**32 if hashed >= 2**31 else hashed) % partitions == partition
