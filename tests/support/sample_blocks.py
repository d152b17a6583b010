"""Blocks of samples from values, as a format's parser returns them, and back to plain values for comparisons."""

import struct
from collections.abc import Iterable, Sequence

import numpy as np
import xxhash

from strandline.jobs.bad_records import MAX_EXAMPLES, BadRecords
from strandline.jobs.sample_block import SampleBlock, SeriesColumns
from support.decoding import canonical

SomeLabels = Sequence[tuple[str, str]]
Labels = tuple[tuple[str, str], ...]
RawLabels = tuple[tuple[bytes, bytes], ...]
RowSample = tuple[int, int, float]
"""A series' row, a time and a value."""
FlatSample = tuple[RawLabels, int, bytes]
"""With the bits of the value, as its bytes."""
TimedBits = tuple[int, int]
"""Milliseconds, and the value's bits as a number."""


def series_columns(series: Sequence[SomeLabels]) -> SeriesColumns:
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


def canonical_labels(labels: SomeLabels) -> bytes:
    return canonical([(name.encode(), value.encode()) for name, value in labels])


def block_of(series: Sequence[SomeLabels], samples: Sequence[RowSample]) -> SampleBlock:
    """These samples, in this order, each from its own record."""
    rows, times, values = zip(*samples, strict=True) if samples else ((), (), ())
    return SampleBlock(
        series=series_columns(series),
        row=np.array(rows, dtype=np.int32),
        times=np.array(times, dtype=np.int64),
        values=np.array(values, dtype=np.float64),
        records=len(samples),
        bad=BadRecords(),
    )


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _field(data: bytes, at: int, tag: int) -> tuple[bytes, int]:
    assert data[at] == tag
    length, at = _varint(data, at + 1)
    return data[at : at + length], at + length


def _labels_of(encoded: bytes) -> RawLabels:
    """The labels of a series' canonical bytes. Checks that they are canonical."""
    labels = []
    at = 0
    while at < len(encoded):
        label, at = _field(encoded, at, 0x0A)
        name, middle = _field(label, 0, 0x0A)
        value, end = _field(label, middle, 0x12)
        assert end == len(label)
        assert name
        assert value
        labels.append((name, value))
    assert labels == sorted(dict(labels).items())
    return tuple(labels)


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def series_of(block: SampleBlock) -> list[RawLabels]:
    """The distinct series of a block. Verifies their hashes with another implementation."""
    columns = block.series
    series = []
    for number in range(len(columns)):
        encoded = columns.labels[columns.starts[number] : columns.starts[number + 1]].tobytes()
        key = (int(columns.key_high[number]) << 64) | int(columns.key_low[number])
        assert key == xxhash.xxh3_128_intdigest(encoded)
        series.append(_labels_of(encoded))
    assert len(set(series)) == len(series)
    assert columns.starts[-1] == len(columns.labels)
    assert block.row.dtype == np.int32
    assert len(block.row) == len(block.times) == len(block.values)
    return series


def flat(block: SampleBlock) -> list[FlatSample]:
    """A block's samples in order, each with its labels and its value's bits. Checks what holds for all text formats."""
    series = series_of(block)
    assert set(block.row.tolist()) == set(range(len(series)))
    assert len(block.bad.examples) == min(block.bad.total, MAX_EXAMPLES)
    assert block.bad.total <= block.records
    return [
        (series[row], time, bits(value))
        for row, time, value in zip(block.row.tolist(), block.times.tolist(), block.values.tolist(), strict=True)
    ]


def values_of(block: SampleBlock) -> list[float]:
    return [float(value) for value in block.values]


def samples_of(blocks: Iterable[SampleBlock]) -> dict[Labels, list[TimedBits]]:
    """All samples by series, in their order."""
    found: dict[Labels, list[TimedBits]] = {}
    for block in blocks:
        series = [tuple((name.decode(), value.decode()) for name, value in labels) for labels in series_of(block)]
        numbers = block.values.view(np.uint64)
        for row, time, value in zip(block.row.tolist(), block.times.tolist(), numbers.tolist(), strict=True):
            found.setdefault(series[row], []).append((time, value))
    return found


def digest_of(block: SampleBlock) -> tuple[object, ...]:
    """The complete content of a block."""
    series = block.series
    columns = (series.starts, series.labels, series.key_low, series.key_high, block.row, block.times, block.values)
    return (*(column.tobytes() for column in columns), block.records, block.bad)
