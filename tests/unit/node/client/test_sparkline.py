"""Plots in one line of text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.client.sparkline import sparkline

pytestmark = pytest.mark.unit


def test_the_height_of_a_character_is_the_value() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 60) == "▁▂▃▄▅▆▇█"
    assert sparkline([7, 0], 60) == "█▁"


def test_a_constant_series_is_drawn_in_the_middle() -> None:
    assert sparkline([3.5, 3.5], 60) == "▄▄"


def test_missing_or_infinite_values_are_gaps() -> None:
    assert sparkline([0, None, math.nan, math.inf, 1], 60) == "▁   █"
    assert sparkline([None, math.nan], 60) == ""
    assert sparkline([], 60) == ""


def test_more_values_than_characters_are_averaged() -> None:
    assert sparkline([0, 0, 1, 1, 0, 2], 3) == "▁██"


@given(st.lists(st.none() | st.floats(), max_size=50), st.integers(1, 20))
def test_it_is_never_wider_than_allowed(values: list[float | None], width: int) -> None:
    drawn = sparkline(values, width)
    assert len(drawn) <= width
    assert set(drawn) <= set(" ▁▂▃▄▅▆▇█")
    if any(value is not None and math.isfinite(value) for value in values):
        assert len(drawn) == min(width, len(values))
