"""Numbers in reports about offsets."""

import pytest

from strandline.node.offsets.texts import number, ranges, span

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0s"),
        (999, "0s"),
        (-999, "0s"),
        (1_000, "1s"),
        (61_000, "1m 1s"),
        (3_600_000, "1h"),
        (90_061_000, "1d 1h"),
        (-7_200_000, "-2h"),
    ],
)
def test_a_span_is_formatted_in_its_two_largest_units(milliseconds: int, text: str) -> None:
    assert span(milliseconds) == text


def test_consecutive_numbers_are_joined_to_ranges() -> None:
    assert ranges((1,)) == "1"
    assert ranges((1, 2, 3, 5, 7, 8)) == "1-3, 5, 7-8"
    assert ranges(()) == ""
    assert (number(None), number(1234567)) == ("-", "1,234,567")
