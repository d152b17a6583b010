"""The control sample: a share of the series that a job leaves out, so that its effect can be compared.

Membership depends only on the seed and the part key, not on the order of the source, its division into parts, or
retries.
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
    """The series whose hash with `seed`, divided by 2^64, is below `fraction`: no series for 0, all for 1."""

    fraction: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise ValueError(f"fraction = {self.fraction} must be from 0 to 1")
        if not 0 <= self.seed < _HASHES:
            raise ValueError(f"seed = {self.seed} must be a non-negative integer of 64 bits")

    def contains(self, key_low: U64s, key_high: U64s) -> Bools:
        """Whether each key belongs to the sample."""
        # In exact integers: 2^64 does not fit 64 bits, and floats near it are rounded.
        bound = ceil(Fraction(self.fraction) * _HASHES)
        if bound in (0, _HASHES):
            return np.full(len(key_low), bound > 0)
        hashes = np.empty(len(key_low), dtype=np.uint64)
        hash_keys(np.uint64(self.seed), key_low, key_high, hashes)
        return hashes < np.uint64(bound)

    def split(self, block: SampleBlock) -> tuple[SampleBlock, SeriesColumns]:
        """Split a block into the block without the sample's series, and those series.

        `records` and `bad` of the block are not changed, because they count what was read.
        """
        is_control = self.contains(block.series.key_low, block.series.key_high)
        if not is_control.any():
            return block, _subset(block.series, is_control)
        is_kept = ~is_control
        new_row = np.cumsum(is_kept, dtype=np.int32) - np.int32(1)
        samples = is_kept[block.row]
        kept = replace(
            block,
            series=_subset(block.series, is_kept),
            row=new_row[block.row[samples]],
            times=block.times[samples],
            values=block.values[samples],
        )
        return kept, _subset(block.series, is_control)


def _subset(series: SeriesColumns, is_wanted: Bools) -> SeriesColumns:
    """A subset of the series, in the same order."""
    lengths = np.diff(series.starts)[is_wanted]
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    labels = np.empty(starts[-1], dtype=np.uint8)
    gather_runs(series.labels, series.starts[:-1][is_wanted], series.starts[1:][is_wanted], labels)
    return SeriesColumns(starts, labels, series.key_low[is_wanted], series.key_high[is_wanted])
