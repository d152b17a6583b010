"""Sample blocks as plain values, to compare."""

from collections.abc import Iterable

import numpy as np

from strandline.jobs.sample_block import SampleBlock
from strandline.kernels.xxh3 import hash_128
from support.remote_write import WriteRequest

Labels = tuple[tuple[str, str], ...]
Sample = tuple[int, int]  # Milliseconds, and the value's bits.


def labels_of(encoded: bytes) -> Labels:
    """Labels as the official protobuf implementation reads them."""
    request = WriteRequest()
    request.timeseries.add().MergeFromString(encoded)
    return tuple((label.name, label.value) for label in request.timeseries[0].labels)


def series_of(block: SampleBlock) -> list[Labels]:
    """The distinct series of a block. Their hashes are checked."""
    series = block.series
    found = []
    for row in range(len(series)):
        start, end = int(series.starts[row]), int(series.starts[row + 1])
        assert hash_128(series.labels, start, end - start) == (series.key_low[row], series.key_high[row])
        found.append(labels_of(series.labels[start:end].tobytes()))
    assert len(set(found)) == len(found)
    return found


def samples_of(blocks: Iterable[SampleBlock]) -> dict[Labels, list[Sample]]:
    """All samples by series, in the order in which they came."""
    found: dict[Labels, list[Sample]] = {}
    for block in blocks:
        series = series_of(block)
        bits = block.values.view(np.uint64)
        assert block.row.dtype == np.int32
        assert len(block.row) == len(block.times) == len(bits)
        for row, time, value in zip(block.row.tolist(), block.times.tolist(), bits.tolist(), strict=True):
            found.setdefault(series[row], []).append((time, value))
    return found


def digest_of(block: SampleBlock) -> tuple[object, ...]:
    """Everything in a block."""
    series = block.series
    columns = (series.starts, series.labels, series.key_low, series.key_high, block.row, block.times, block.values)
    return (*(column.tobytes() for column in columns), block.records, block.bad)
