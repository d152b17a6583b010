"""The output of decoding: columns with one row per series of a record, and columns of the samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.wire.kernels.labels import Verdict
from strandline.wire.kernels.records import Count

# Iterating over the class creates its members again each time.
_VERDICTS = tuple(Verdict)


@dataclass(frozen=True, slots=True)
class Fault:
    """A record that could not be decoded: its number in the batch, and the reason."""

    record: int
    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """Contents of valid records that produced no row: data that is not stored yet, and dropped series by reason."""

    exemplars: int
    histograms: int
    metadata: int
    series: Mapping[Verdict, int]

    @classmethod
    def of(cls, counts: Sequence[int]) -> "Skipped":
        """From the kernels' array of counts."""
        return cls(
            exemplars=counts[Count.EXEMPLARS],
            histograms=counts[Count.HISTOGRAMS],
            metadata=counts[Count.METADATA],
            series={verdict: counts[verdict] for verdict in _VERDICTS if counts[verdict]},
        )


@dataclass(frozen=True, slots=True)
class Columns:
    """A decoded batch.

    Row i of the series columns is one series of one record. Its samples are rows `first_sample[i]` up to, but not
    including, `first_sample[i + 1]` of the sample columns. Rows are in the order of records and, within a record, of
    the message. A series' labels, in canonical form, are `data[labels_start[i] : labels_start[i] + labels_length[i]]`.
    `key_low` and `key_high` are the two words of their hash, which identifies the part key everywhere.
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
        """The labels of one row. For messages and tests: hot paths use the columns."""
        start = int(self.labels_start[row])
        return self.data[start : start + int(self.labels_length[row])].tobytes()
