"""Partitions that a node does not serve."""

import pytest

from strandline.node.query.coverage import ranges, unserved, unserved_in_words

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("partitions", "served", "missing"),
    [(3, {0, 1, 2}, ()), (3, {1}, (0, 2)), (None, {0}, ()), (3, set(), ()), (2, {0, 1, 2}, ())],
)
def test_those_that_the_topic_has_and_the_node_has_not(
    partitions: int | None, served: set[int], missing: tuple[int, ...]
) -> None:
    assert unserved(partitions, served) == missing


@pytest.mark.parametrize(
    ("numbers", "written"), [((), ""), ((4,), "4"), ((0, 1), "0-1"), ((0, 1, 2, 5, 7, 8), "0-2, 5, 7-8")]
)
def test_numbers_are_written_as_the_settings_have_them(numbers: tuple[int, ...], written: str) -> None:
    assert ranges(numbers) == written


def test_they_are_named() -> None:
    assert unserved_in_words((1,), 2) == "this node does not serve partition 1 of 2"
    assert unserved_in_words((1, 2), 3) == "this node does not serve partitions 1-2 of 3"
