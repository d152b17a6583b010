"""What decoding gives: columns, one row a series of a record, and the samples behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.wire.kernels.labels import Verdict
from strandline.wire.kernels.records import Count

# Going through the class itself makes its members anew.
_VERDICTS = tuple(Verdict)


@dataclass(frozen=True, slots=True)
class Fault:
    """A record that could not be decoded: its number in the batch, and why, in words."""

    record: int
    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """What sound records held that gives no row: data that is not stored yet, and series dropped, by reason."""

    exemplars: int
    histograms: int
    metadata: int
    series: Mapping[Verdict, int]

    @classmethod
    def of(cls, counts: Sequence[int]) -> "Skipped":
        """As the kernels count."""
        return cls(
            exemplars=counts[Count.EXEMPLARS],
            histograms=counts[Count.HISTOGRAMS],
            metadata=counts[Count.METADATA],
            series={verdict: counts[verdict] for verdict in _VERDICTS if counts[verdict]},
        )


@dataclass(frozen=True, slots=True)
class Columns:
    """A decoded batch.

    Row i of the series columns is one series of one record; its samples are rows `first_sample[i]` up to, not
    including, `first_sample[i + 1]` of the sample columns. Rows stand in the order of records and, within a record, of
    the message. A series' labels, in canonical form, are `data[labels_start[i] : labels_start[i] + labels_length[i]]`;
    `key_low` and `key_high` are the two words of their hash, which stands for the part key everywhere.
    """

    data: npt.NDArray[np.uint8]
    record: npt.NDArray[np.int32]
    labels_start: npt.NDArray[np.int64]
    labels_length: npt.NDArray[np.int32]
    key_low: npt.NDArray[np.uint64]
    key_high: npt.NDArray[np.uint64]
    metric: npt.NDArray[np.uint64]
    first_sample: npt.NDArray[np.int64]
    time: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    faults: tuple[Fault, ...]
    skipped: Skipped

    def labels(self, row: int) -> bytes:
        """The labels of one row. For people and tests: hot paths use the columns."""
        start = int(self.labels_start[row])
        return self.data[start : start + int(self.labels_length[row])].tobytes()
