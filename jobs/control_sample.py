"""The control sample: a share of the series that a job leaves out, so that its effect can be compared.

Whether a series belongs to it follows from the seed and the part key alone. So it is the same whatever the order of the
source, its division into parts, and the number of retries.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

import numpy as np

from strandline.arrays import Bools, U64s
from strandline.index.kernels.gather import gather_runs
from strandline.jobs.kernels.seeded_hash import hash_keys
from strandline.jobs.sample_block import SampleBlock, SeriesColumns

_HASHES = 2**64


@dataclass(frozen=True, slots=True)
class ControlSample:
    """The series whose hash with `seed`, divided by 2^64, is below `fraction`: none for 0, all for 1."""

    fraction: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise ValueError(f"fraction = {self.fraction} must be from 0 to 1")
        if not 0 <= self.seed < _HASHES:
            raise ValueError(f"seed = {self.seed} must be a non-negative integer of 64 bits")

    def contains(self, key_low: U64s, key_high: U64s) -> Bools:
        """For each key whether its series belongs to the sample."""
        # In whole numbers: 2^64 is no number of 64 bits, and a float close to it is rounded.
        bound = ceil(Fraction(self.fraction) * _HASHES)
        if bound in (0, _HASHES):
            return np.full(len(key_low), bound > 0)
        hashes = np.empty(len(key_low), dtype=np.uint64)
        hash_keys(np.uint64(self.seed), key_low, key_high, hashes)
        return hashes < np.uint64(bound)

    def split(self, block: SampleBlock) -> tuple[SampleBlock, SeriesColumns]:
        """The block without the series of the sample, and those series.

        What was read stays counted: `records` and `bad` of the block are as they were.
        """
        is_control = self.contains(block.series.key_low, block.series.key_high)
        if not is_control.any():
            return block, _chosen(block.series, is_control)
        is_kept = ~is_control
        new_row = np.cumsum(is_kept, dtype=np.int32) - np.int32(1)
        samples = is_kept[block.row]
        kept = replace(
            block,
            series=_chosen(block.series, is_kept),
            row=new_row[block.row[samples]],
            times=block.times[samples],
            values=block.values[samples],
        )
        return kept, _chosen(block.series, is_control)


def _chosen(series: SeriesColumns, is_chosen: Bools) -> SeriesColumns:
    """Some of the series, in their order."""
    lengths = np.diff(series.starts)[is_chosen]
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    labels = np.empty(starts[-1], dtype=np.uint8)
    gather_runs(series.labels, series.starts[:-1][is_chosen], series.starts[1:][is_chosen], labels)
    return SeriesColumns(starts, labels, series.key_low[is_chosen], series.key_high[is_chosen])
