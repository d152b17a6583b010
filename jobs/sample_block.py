"""Samples read from a source, as columns: the output of every format's parser, and the input of landing."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.arrays import F64s, I64s, U64s
from strandline.jobs.bad_records import BadRecords


@dataclass(frozen=True, slots=True)
class SeriesColumns:
    """Distinct series. The labels of series i are `labels[starts[i] : starts[i + 1]]`: the label fields of a
    remote-write `TimeSeries` in canonical form, as `strandline.wire.kernels.labels` defines it. `key_low` and
    `key_high` are the two words of their hash (`strandline.kernels.xxh3.hash_128`), which identifies the part key.
    """

    starts: I64s
    labels: npt.NDArray[np.uint8]
    key_low: U64s
    key_high: U64s

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, slots=True)
class SampleBlock:
    """Samples in the order of the source: sample j belongs to series `row[j]`, with `times[j]` in milliseconds.

    `records` is the number of records read, including bad ones: lines, rows or series, depending on the format. A
    record may contain several samples. `nulls` is the number of null values in good records, which are not samples.
    `unread` is the number of bytes at the end of the input that the parser has not read because the block was full.
    """

    series: SeriesColumns
    row: npt.NDArray[np.int32]
    times: I64s
    values: F64s
    records: int
    bad: BadRecords
    nulls: int = 0
    unread: int = 0
