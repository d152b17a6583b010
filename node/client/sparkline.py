"""Plots a series in one line of text, with block characters."""

import math
from collections.abc import Sequence
from itertools import pairwise

_BLOCKS = "▁▂▃▄▅▆▇█"
_FLAT = "▄"
_GAP = " "


def sparkline(values: Sequence[float | None], width: int) -> str:
    """At most `width` characters. None and values that are not finite are gaps. If there are more values than
    characters, each character shows the mean of several values.
    """
    cells = [_mean(cell) for cell in _cells(values, width)]
    finite = [cell for cell in cells if cell is not None]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    return "".join(_GAP if cell is None else _block(cell, low, high) for cell in cells)


def _cells(values: Sequence[float | None], width: int) -> list[Sequence[float | None]]:
    count = min(len(values), max(1, width))
    edges = [index * len(values) // count for index in range(count + 1)] if count else [0]
    return [values[start:end] for start, end in pairwise(edges)]


def _mean(cell: Sequence[float | None]) -> float | None:
    finite = [value for value in cell if value is not None and math.isfinite(value)]
    # Divided before summing: the sum of two large values may overflow.
    return sum(value / len(finite) for value in finite) if finite else None


def _block(value: float, low: float, high: float) -> str:
    # Halved, because the difference of the largest and the smallest double overflows.
    span = high / 2 - low / 2
    if span <= 0:
        return _FLAT
    return _BLOCKS[min(len(_BLOCKS) - 1, int((value / 2 - low / 2) / span * len(_BLOCKS)))]
