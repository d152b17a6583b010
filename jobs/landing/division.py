"""Dividing a block of samples, so that what lands in one transaction stays small, however short its records were.

A few bytes of text may become many: constants and metrics stand in each series, and a series stands in each of its
hours. Where a block is divided follows from its samples alone.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from strandline.jobs.landing.kernels.sizes import find_cuts
from strandline.jobs.sample_block import SampleBlock

_UNBOUNDED = np.iinfo(np.int64).max
_NO_CUTS = np.empty(0, dtype=np.int64)


def divide_block(block: SampleBlock, most: int) -> Iterator[SampleBlock]:
    """The samples of a block, in blocks of about equal size that take at most `most` bytes as requests, before
    compression. The first one has the records and the bad ones. A sample that alone takes more is a block.
    """
    columns = block.row, block.times, block.series.starts
    _, size = find_cuts(*columns, _UNBOUNDED, _NO_CUTS)
    if size <= most:
        yield block
        return
    even = size // -(-size // most)
    # With some room, for series whose labels are repeated behind a cut: else a small rest would be left.
    limit = min(most, even + even // 8 + 1)
    number, _ = find_cuts(*columns, limit, _NO_CUTS)
    cuts = np.empty(number, dtype=np.int64)
    find_cuts(*columns, limit, cuts)
    for first, behind in pairwise([0, *cuts.tolist(), len(block.row)]):
        samples = slice(first, behind)
        part = replace(block, row=block.row[samples], times=block.times[samples], values=block.values[samples])
        yield part if first == 0 else replace(part, records=0, bad=type(block.bad)(), nulls=0)
