"""Splits a remote-write request by series into one or a few requests for each partition.

The partitioner is the key hash's low word modulo the number of partitions (`key_low % partitions`), over the labels in
canonical form: the same series always goes to the same partition, whatever the order of its labels. Series are not
decoded and encoded again: the bytes of their fields are copied unchanged and in order. Only labels that are not
canonical are rewritten, followed by the series' other fields unchanged.

What decoding would drop is dropped here, and counted in the same way. Two kinds of field are dropped as well:

- A series without samples. Its labels alone store nothing and would only use space in Kafka. It is counted separately,
  because it is not a fault; a series with only histograms or exemplars is of this kind as long as those are skipped.
- Fields of a request other than its series: metadata, which is counted, and unknown fields.

Together, what is skipped here and what decoding the parts skips is what decoding the whole request would skip.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s
from strandline.errors import Fatal
from strandline.time_range import EARLIEST, LATEST, TimeRange
from strandline.wire.columns import Skipped
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.kernels.split import (
    HEADER,
    MIN_KEPT_BYTES,
    SPLIT_COUNTS,
    WITHOUT_SAMPLES,
    copy_series,
    plan_parts,
    plan_series,
)
from strandline.wire.snappy import compress

# By default, Kafka's clients send at most a million bytes. Snappy makes incompressible bytes longer, by up to a sixth.
MAX_PART_BYTES = 800_000

# Column types in the order in which the kernels fill them.
ROW_TYPES = ("i4", "i8", "i8", "i8")
PART_TYPES = ("i4", "i8", "i8", "i8")
Arrays = tuple[npt.NDArray[Any], ...]

MAX_NAME_CHARS = 300  # Characters of a series' labels in an error: they may have a quarter of a megabyte.


class BadRequest(Fatal):
    """A request that will never be accepted. The message has the reason, as decoding reports it if it is malformed."""


class SeriesTooLarge(BadRequest):
    """One series of the request is larger than the limit of a part. A series is never divided."""


@dataclass(frozen=True, slots=True)
class Part:
    """An uncompressed `WriteRequest` with series of one partition, and its numbers of series and samples."""

    partition: int
    body: bytes
    series: int
    samples: int


@dataclass(frozen=True, slots=True)
class Split:
    """A request in parts, and what no part contains.

    Parts are ordered by partition; those of one partition are in the order of their series in the request. A partition
    without series has no part. `skipped` counts exemplars and histograms only of dropped series: the others are in the
    parts. `without_samples` counts the series that were dropped only for that reason. `times` contains the times of all
    samples; its end is before its start if there are none.
    """

    parts: tuple[Part, ...]
    skipped: Skipped
    without_samples: int
    times: TimeRange


def split_request(body: bytes, partitions: int, limits: Limits, *, max_bytes: int = MAX_PART_BYTES) -> Split:
    """Split a decompressed `WriteRequest`; parts have at most `max_bytes` before compression.

    If the result is a single unchanged part, the request itself is returned. Raises `BadRequest` for a request that
    decoding would refuse, and `SeriesTooLarge` if a single series exceeds `max_bytes`.
    """
    if partitions < 1 or max_bytes < 1:
        raise ValueError(f"partitions = {partitions} and max_bytes = {max_bytes} must both be 1 or more")
    if len(body) > limits.record_bytes:
        raise BadRequest(
            f"the request has {len(body)} bytes, over the limit of {limits.record_bytes}",
            remedy="Send fewer series in one request",
        )
    data = np.frombuffer(body, dtype=np.uint8)
    # Arrays for the worst case: untouched memory costs nothing.
    rows: Arrays = tuple(np.empty(len(body) // MIN_KEPT_BYTES, dtype=kind) for kind in ROW_TYPES)
    spare = np.empty(2 * len(body) + HEADER, dtype=np.uint8)
    counts = np.zeros(SPLIT_COUNTS, dtype=np.int64)
    bounded = (limits.labels, limits.label_name, limits.label_value)
    times = np.array([LATEST, EARLIEST], dtype=np.int64)
    n_rows, rewritten, fault_at = plan_series(data, partitions, bounded, rows, spare, counts, times)
    if fault_at >= 0:
        raise BadRequest(
            f"no remote-write request: malformed in the field at byte {fault_at}",
            remedy="Send a Prometheus remote-write 1.0 request",
        )
    rows = tuple(column[:n_rows] for column in rows)
    part = np.empty(n_rows, dtype=np.int32)
    parts: Arrays = tuple(np.empty(n_rows, dtype=kind) for kind in PART_TYPES)
    n_parts, too_large = plan_parts(partitions, max_bytes, rows, part, parts)
    if too_large >= 0:
        alone = tuple(column[too_large : too_large + 1] for column in rows)
        (field,) = _bodies(alone, np.zeros(1, dtype=np.int32), alone[2], np.zeros(1, dtype=np.int64))
        raise SeriesTooLarge(
            f"the series {_name(field, limits)} takes {len(field)} bytes, over the limit of {max_bytes} for one part",
            remedy="Send its samples in several requests",
        )
    of_partition, sizes, series, samples = (column[:n_parts] for column in parts)
    order = of_partition.argsort(kind="stable")
    untouched = rewritten == 0 and sizes.tolist() == [len(body)]
    bodies = [body] if untouched else _bodies(rows, part, sizes, order)
    found = counts.tolist()
    columns = (of_partition[order].tolist(), bodies, series[order].tolist(), samples[order].tolist())
    return Split(
        parts=tuple(Part(*fields) for fields in zip(*columns, strict=True)),
        skipped=Skipped.of(found),
        without_samples=found[WITHOUT_SAMPLES],
        times=TimeRange(*times.tolist()),
    )


def _bodies(rows: Arrays, part: npt.NDArray[np.int32], sizes: I64s, order: I64s) -> list[bytes]:
    """The bytes of each part, in the given order of parts."""
    ends = np.cumsum(sizes[order])
    starts = ends - sizes[order]
    position = np.empty(len(sizes), dtype=np.int64)
    position[order] = starts
    packed = np.empty(sizes.sum(), dtype=np.uint8)
    copy_series(rows, part, position, packed)
    return [packed[start:end].tobytes() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _name(series: bytes, limits: Limits) -> str:
    """The labels of a request's only series, in PromQL's notation; truncated if they are long."""
    labels = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in _labels(series, limits))
    return f"{{{labels}}}" if len(labels) <= MAX_NAME_CHARS else f"{{{labels[:MAX_NAME_CHARS]}...}}"


def _labels(series: bytes, limits: Limits) -> Iterator[tuple[str, str]]:
    request = decode_batch([compress(series)], limits)
    for label in _fields(request.labels(0)):
        name, value = _fields(label)
        yield name.decode(), value.decode()


def _fields(message: bytes) -> Iterator[bytes]:
    """The contents of a valid message's fields, all of which have a tag of one byte and a length."""
    at = 0
    while at < len(message):
        length, shift, at = 0, 0, at + 1
        while True:
            length |= (message[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if message[at - 1] < 0x80:
                break
        yield message[at : at + length]
        at += length
