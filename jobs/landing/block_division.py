"""Dividing a block of samples, so that a transaction stays small however short the records of the source are.

A few bytes of text may become many: constants and metric are repeated for each series, and a series for each of its
hours. Where a block is divided depends on its samples alone.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from strandline.jobs.landing.kernels.sizes import find_cuts
from strandline.jobs.sample_block import SampleBlock

_UNBOUNDED = np.iinfo(np.int64).max
_NO_CUTS = np.empty(0, dtype=np.int64)


def divide_block(block: SampleBlock, max_bytes: int) -> Iterator[SampleBlock]:
    """Divide a block into blocks of about equal size, of at most `max_bytes` as requests before compression. The
    first one has the counts of records and the bad records. A sample that takes more alone is a block of its own.
    """
    columns = block.row, block.times, block.series.starts
    _, size = find_cuts(*columns, _UNBOUNDED, _NO_CUTS)
    if size <= max_bytes:
        yield block
        return
    even = size // -(-size // max_bytes)
    # An eighth more, because series are repeated after each cut: otherwise a small block would remain at the end.
    limit = min(max_bytes, even + even // 8 + 1)
    number, _ = find_cuts(*columns, limit, _NO_CUTS)
    cuts = np.empty(number, dtype=np.int64)
    find_cuts(*columns, limit, cuts)
    for first, stop in pairwise([0, *cuts.tolist(), len(block.row)]):
        samples = slice(first, stop)
        part = replace(block, row=block.row[samples], times=block.times[samples], values=block.values[samples])
        yield part if first == 0 else replace(part, records=0, bad=type(block.bad)(), nulls=0)
