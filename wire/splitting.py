"""Splitting a remote-write request by series into one request, or a few, for each partition.

The partitioner is the key hash's low word modulo the number of partitions (`key_low % partitions`), over the labels in
canonical form: the same series goes to the same partition, however its labels were ordered. Series are not decoded
and encoded: the bytes of each one's field are copied as they came, in their order. Only labels that are not canonical
are written anew, with the series' other fields as they came behind them.

What decoding would drop is dropped here, and counted in the same way. Two kinds of field end here as well:

- A series without a sample. Its labels alone store nothing, so it would only cost room in Kafka. It is counted apart,
  because nothing is wrong with it; one that has only histograms or exemplars is of this kind as long as those are
  skipped.
- What stands in a request beside its series: metadata, which is counted, and fields that the protocol does not know.

So what is skipped here and what decoding the parts skips is together what decoding the whole request would skip.
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

# A million bytes is what Kafka's clients send at most, unless told otherwise; bytes that snappy can't make shorter it
# makes longer, by up to a sixth.
MAX_PART_BYTES = 800_000

# Column types in the order in which the kernels fill them.
ROW_TYPES = ("i4", "i8", "i8", "i8")
PART_TYPES = ("i4", "i8", "i8", "i8")
Arrays = tuple[npt.NDArray[Any], ...]

NAME_SHOWN = 300  # Characters of a series' labels in an error: they may be a quarter of a megabyte.


class BadRequest(Fatal):
    """A request that will never be taken. The message is the reason, in the words of decoding where it is malformed."""


class SeriesTooLarge(BadRequest):
    """One series of the request is larger than a part may be, and a series is never divided."""


@dataclass(frozen=True, slots=True)
class Part:
    """A `WriteRequest`, not compressed, that holds series of one partition, and how much it holds."""

    partition: int
    body: bytes
    series: int
    samples: int


@dataclass(frozen=True, slots=True)
class Split:
    """A request in parts, and what no part holds.

    Parts stand in the order of partitions; those of one partition follow each other as their series do in the request.
    A partition that gets no series has no part. `skipped` counts exemplars and histograms only of series that were
    dropped: the others travel in the parts. `without_samples` counts the series that were dropped for that alone.
    The times of all samples lie in `times`; its end lies before its beginning if there is none.
    """

    parts: tuple[Part, ...]
    skipped: Skipped
    without_samples: int
    times: TimeRange


def split_request(body: bytes, partitions: int, limits: Limits, *, max_bytes: int = MAX_PART_BYTES) -> Split:
    """Split an unpacked `WriteRequest`; parts have at most `max_bytes`, before they are compressed.

    A request that comes out as one part with nothing changed is handed back itself. Raises `BadRequest` for a request
    that decoding would refuse, and `SeriesTooLarge` where a single series passes `max_bytes`.
    """
    if partitions < 1 or max_bytes < 1:
        raise ValueError(f"partitions = {partitions} and max_bytes = {max_bytes} must both be 1 or more")
    if len(body) > limits.record_bytes:
        raise BadRequest(
            f"the request has {len(body)} bytes, over the limit of {limits.record_bytes}",
            remedy="Send fewer series in one request",
        )
    data = np.frombuffer(body, dtype=np.uint8)
    # Arrays for the worst case: memory that is not written to costs nothing.
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
    place = np.empty(len(sizes), dtype=np.int64)
    place[order] = starts
    packed = np.empty(sizes.sum(), dtype=np.uint8)
    copy_series(rows, part, place, packed)
    return [packed[start:end].tobytes() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def _name(series: bytes, limits: Limits) -> str:
    """The labels of a request's one series, as people write them; cut off where they are too many to read."""
    labels = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in _labels(series, limits))
    return f"{{{labels}}}" if len(labels) <= NAME_SHOWN else f"{{{labels[:NAME_SHOWN]}...}}"


def _labels(series: bytes, limits: Limits) -> Iterator[tuple[str, str]]:
    request = decode_batch([compress(series)], limits)
    for label in _fields(request.labels(0)):
        name, value = _fields(label)
        yield name.decode(), value.decode()


def _fields(message: bytes) -> Iterator[bytes]:
    """The contents of a sound message's fields, all of which have one byte of tag and a length."""
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
