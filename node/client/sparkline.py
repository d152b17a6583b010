"""A series in one line of text: block characters whose height is the value."""

import math
from collections.abc import Sequence
from itertools import pairwise

_BLOCKS = "▁▂▃▄▅▆▇█"
_FLAT = "▄"
_GAP = " "


def sparkline(values: Sequence[float | None], width: int) -> str:
    """At most `width` characters. None is a gap, and so is what is not finite. Where there are more values than
    characters, each character is the mean of those that it stands for.
    """
    cells = [_mean(cell) for cell in _cells(values, width)]
    finite = [cell for cell in cells if cell is not None]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    return "".join(_GAP if cell is None else _block(cell, low, high) for cell in cells)


def _cells(values: Sequence[float | None], width: int) -> list[Sequence[float | None]]:
    count = min(len(values), max(1, width))
    edges = [place * len(values) // count for place in range(count + 1)] if count else [0]
    return [values[first:behind] for first, behind in pairwise(edges)]


def _mean(cell: Sequence[float | None]) -> float | None:
    finite = [value for value in cell if value is not None and math.isfinite(value)]
    # Each part by itself: the sum of two large ones may not be finite.
    return sum(value / len(finite) for value in finite) if finite else None


def _block(value: float, low: float, high: float) -> str:
    # Halves, so that the distance from the least to the greatest double is finite.
    span = high / 2 - low / 2
    if span <= 0:
        return _FLAT
    return _BLOCKS[min(len(_BLOCKS) - 1, int((value / 2 - low / 2) / span * len(_BLOCKS)))]
