"""Cardinality: which labels have many values, and which values have many series.

The figures are those of Prometheus' status page, under the same names. They are exact for the keys that searches see,
or that a query matches. Deleted keys, and labels or values that only they have, are not included. Entries with equal
figures are ordered by name, by code points, so that the same keys always give the same result.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from heapq import nsmallest
from typing import Self

METRIC_NAME = "__name__"
DEFAULT_LIMIT = 10


@dataclass(frozen=True, slots=True)
class LabelCardinality:
    """A label: its number of values, the number of series that have it, and the total bytes of its distinct values."""

    name: str
    values: int
    series: int
    value_bytes: int


@dataclass(frozen=True, slots=True)
class ValueCardinality:
    """A value of a label, and the number of series that have it."""

    label: str
    value: str
    series: int


@dataclass(frozen=True, slots=True)
class Cardinality:
    """The figures of one moment.

    `labels` has every label, by name. The tops have as many entries as requested, or as exist: series of pairs of a
    label and a value, and of metric names.
    """

    series: int
    labels: tuple[LabelCardinality, ...]
    top_pairs_by_series: tuple[ValueCardinality, ...]
    top_metrics_by_series: tuple[ValueCardinality, ...]

    @property
    def pairs(self) -> int:
        """The number of distinct pairs of a label and a value."""
        return sum(label.values for label in self.labels)

    def top_labels_by_values(self, limit: int = DEFAULT_LIMIT) -> list[LabelCardinality]:
        """The labels with the most values."""
        return self._top_labels(lambda label: label.values, limit)

    def top_labels_by_bytes(self, limit: int = DEFAULT_LIMIT) -> list[LabelCardinality]:
        """The labels whose values take the most bytes."""
        return self._top_labels(lambda label: label.value_bytes, limit)

    def top_labels_by_series(self, limit: int = DEFAULT_LIMIT) -> list[LabelCardinality]:
        """The labels that the most series have."""
        return self._top_labels(lambda label: label.series, limit)

    def _top_labels(self, figure: Callable[[LabelCardinality], int], limit: int) -> list[LabelCardinality]:
        return nsmallest(limit, self.labels, key=lambda label: (-figure(label), label.name))

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Decode the result of the extension's `Cardinality.labels`."""
        reader = _Packed(packed)
        series, labels = reader.numbers("<II")
        return cls(
            series,
            labels=tuple(reader.label() for _ in range(labels)),
            top_pairs_by_series=tuple(reader.values()),
            top_metrics_by_series=tuple(reader.values()),
        )


def unpack_values(packed: bytes) -> list[ValueCardinality]:
    """Decode the result of the extension's `Cardinality.values`."""
    return _Packed(packed).values()


class _Packed:
    """Reads the extension's layout sequentially."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._position = 0

    def numbers(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(layout, self._packed, self._position)
        self._position += struct.calcsize(layout)
        return found

    def text(self) -> str:
        (length,) = self.numbers("<H")
        self._position += length
        return self._packed[self._position - length : self._position].decode()

    def label(self) -> LabelCardinality:
        values, series, value_bytes = self.numbers("<IIQ")
        return LabelCardinality(self.text(), values, series, value_bytes)

    def values(self) -> list[ValueCardinality]:
        (count,) = self.numbers("<I")
        return [self._value() for _ in range(count)]

    def _value(self) -> ValueCardinality:
        (series,) = self.numbers("<I")
        return ValueCardinality(self.text(), self.text(), series)
