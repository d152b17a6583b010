"""Blocks of samples from values, as a format's parser would give them."""

from collections.abc import Sequence

import numpy as np
import xxhash

from strandline.jobs.bad_records import BadRecords
from strandline.jobs.sample_block import SampleBlock, SeriesColumns
from support.decoding import canonical

Labels = Sequence[tuple[str, str]]
Sample = tuple[int, int, float]
"""A series' row, a time and a value."""


def series_columns(series: Sequence[Labels]) -> SeriesColumns:
    """Distinct label sets, hashed by another implementation."""
    encoded = [canonical_labels(labels) for labels in series]
    assert len(set(encoded)) == len(encoded)
    keys = [xxhash.xxh3_128_intdigest(labels) for labels in encoded]
    return SeriesColumns(
        starts=np.cumsum([0, *map(len, encoded)], dtype=np.int64),
        labels=np.frombuffer(b"".join(encoded), dtype=np.uint8),
        key_low=np.array([key & (2**64 - 1) for key in keys], dtype=np.uint64),
        key_high=np.array([key >> 64 for key in keys], dtype=np.uint64),
    )


def canonical_labels(labels: Labels) -> bytes:
    return canonical([(name.encode(), value.encode()) for name, value in labels])


def block_of(series: Sequence[Labels], samples: Sequence[Sample]) -> SampleBlock:
    """These samples, in this order, each of which was a record of its own."""
    rows, times, values = zip(*samples, strict=True) if samples else ((), (), ())
    return SampleBlock(
        series=series_columns(series),
        row=np.array(rows, dtype=np.int32),
        times=np.array(times, dtype=np.int64),
        values=np.array(values, dtype=np.float64),
        records=len(samples),
        bad=BadRecords(),
    )
