"""Partitions that a node does not serve."""

import pytest

from strandline.node.query.coverage import ranges, unserved, unserved_in_words

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("partitions", "served", "missing"),
    [(3, {0, 1, 2}, ()), (3, {1}, (0, 2)), (None, {0}, ()), (3, set(), ()), (2, {0, 1, 2}, ())],
)
def test_unserved_partitions_are_those_of_the_topic_without_a_shard(
    partitions: int | None, served: set[int], missing: tuple[int, ...]
) -> None:
    assert unserved(partitions, served) == missing


@pytest.mark.parametrize(
    ("numbers", "written"), [((), ""), ((4,), "4"), ((0, 1), "0-1"), ((0, 1, 2, 5, 7, 8), "0-2, 5, 7-8")]
)
def test_numbers_are_written_in_the_format_of_the_settings(numbers: tuple[int, ...], written: str) -> None:
    assert ranges(numbers) == written


def test_unserved_partitions_are_named_in_a_warning() -> None:
    assert unserved_in_words((1,), 2) == "this node does not serve partition 1 of 2"
    assert unserved_in_words((1, 2), 3) == "this node does not serve partitions 1-2 of 3"
