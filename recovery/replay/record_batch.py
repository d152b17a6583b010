"""Records of one partition, the input of a replay, independent of their reader."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from strandline.arrays import Bools, I64s


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Records in order of their offsets: record times in milliseconds (negative for none), whether the producer has
    checked the times of their samples, and values.
    """

    offsets: I64s
    times: I64s
    times_checked: Bools
    values: Sequence[bytes] = field(repr=False)

    def part(self, first: int, end: int) -> "RecordBatch":
        """The records at positions from `first` up to, but not including, `end`."""
        rows = slice(first, end)
        return RecordBatch(self.offsets[rows], self.times[rows], self.times_checked[rows], self.values[rows])
