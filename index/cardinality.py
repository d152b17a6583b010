"""What makes an index large: which labels have many values, and which values many series.

The figures are those that Prometheus shows on its status page, under the names that users know from there. They are
exact for the keys that they are about: all that searches see, or those that a query matches. Keys that were deleted
don't count, and what only they had is not there. Where two have equal figures the one that is first by name, in order
of the code points, stands first; so the same keys always give the same answer.
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
    """A label: how many values it has, how many series have it, and the bytes of all its values, each counted once."""

    name: str
    values: int
    series: int
    value_bytes: int


@dataclass(frozen=True, slots=True)
class ValueCardinality:
    """A value of a label, and how many series have it."""

    label: str
    value: str
    series: int


@dataclass(frozen=True, slots=True)
class Cardinality:
    """The figures of one moment.

    `labels` has every label, by name. The tops have as many entries as were asked for, or as there are; series are
    those of pairs of a label and a value, and of metric names.
    """

    series: int
    labels: tuple[LabelCardinality, ...]
    top_pairs_by_series: tuple[ValueCardinality, ...]
    top_metrics_by_series: tuple[ValueCardinality, ...]

    @property
    def pairs(self) -> int:
        """How many different pairs of a label and a value there are."""
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
        """Read what the extension's `Cardinality.labels` returns."""
        reader = _Packed(packed)
        series, labels = reader.numbers("<II")
        return cls(
            series,
            labels=tuple(reader.label() for _ in range(labels)),
            top_pairs_by_series=tuple(reader.values()),
            top_metrics_by_series=tuple(reader.values()),
        )


def unpack_values(packed: bytes) -> list[ValueCardinality]:
    """Read what the extension's `Cardinality.values` returns."""
    return _Packed(packed).values()


class _Packed:
    """Reads the extension's layout from its start on."""

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
