"""Records of one partition as a replay is given them, whatever reads them."""

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

    def part(self, first: int, behind: int) -> "RecordBatch":
        """Those at places from `first` up to, not including, `behind`."""
        places = slice(first, behind)
        return RecordBatch(self.offsets[places], self.times[places], self.times_checked[places], self.values[places])
