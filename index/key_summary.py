"""Summaries of keys: what a bucket's records say of their keys, sufficient to update the index without the records."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, Rows, U64s, run_lengths, run_offsets
from strandline.index.kernels.gather import gather_runs


@dataclass(frozen=True, slots=True)
class KeySummary:
    """One row per key: the hashes, the minimum and maximum sample time, and the first occurrence of the key: the offset
    of its record, and the position of the series in the record.
    """

    metric: U64s
    key_high: U64s
    key_low: U64s
    least: I64s
    greatest: I64s
    offset: I64s
    position: I64s

    def __len__(self) -> int:
        return len(self.metric)

    def take(self, rows: Rows) -> "KeySummary":
        """Return some of the rows, in this order."""
        return KeySummary(*(column[rows] for column in self.columns()))

    def part(self, first: int, stop: int) -> "KeySummary":
        """Return the rows `[first, stop)` as views."""
        return KeySummary(*(column[first:stop] for column in self.columns()))

    def grown_to(self, rows: int) -> "KeySummary":
        """Return columns with this many rows that begin like these; the rest is undefined."""
        longer = KeySummary(*(np.empty(rows, dtype=column.dtype) for column in self.columns()))
        longer.put(0, self)
        return longer

    def put(self, first: int, rows: "KeySummary") -> None:
        """Overwrite the rows from `first`."""
        for mine, given in zip(self.columns(), rows.columns(), strict=True):
            mine[first : first + len(rows)] = given

    def first_seen_order(self) -> Rows:
        """Return the order in which a reader of the records sees the keys first."""
        return np.lexsort((self.position, self.offset))

    @staticmethod
    def concatenated(parts: list["KeySummary"]) -> "KeySummary":
        """Concatenate several summaries."""
        if not parts:
            return KeySummary.empty()
        columns = zip(*(part.columns() for part in parts), strict=True)
        return KeySummary(*(np.concatenate(column) for column in columns))

    @classmethod
    def empty(cls) -> "KeySummary":
        """No keys."""
        hashes, numbers = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
        return cls(hashes, hashes, hashes, numbers, numbers, numbers, numbers)

    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """The columns, in their order."""
        return self.metric, self.key_high, self.key_low, self.least, self.greatest, self.offset, self.position


@dataclass(frozen=True, slots=True)
class PartKeyBytes:
    """The bytes of part keys: key i is `keys[offsets[i]:offsets[i + 1]]`."""

    offsets: I64s
    keys: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: Rows) -> "PartKeyBytes":
        """Return some of the keys, in this order."""
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        offsets = run_offsets(ends - starts)
        keys = np.empty(int(offsets[-1]), dtype=np.uint8)
        gather_runs(self.keys, starts, ends, keys)
        return PartKeyBytes(offsets, keys)

    @staticmethod
    def concatenated(parts: list["PartKeyBytes"]) -> "PartKeyBytes":
        """Concatenate several lists."""
        lengths = [run_lengths(part.offsets) for part in parts]
        offsets = np.zeros(sum(map(len, lengths)) + 1, dtype=np.int64)
        if parts:
            np.cumsum(np.concatenate(lengths), out=offsets[1:])
        empty = np.empty(0, dtype=np.uint8)
        return PartKeyBytes(offsets, np.concatenate([part.keys for part in parts]) if parts else empty)
