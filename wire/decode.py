"""Decodes remote-write requests into columns, a batch of records at a time.

A record that can't be decoded adds no rows but a fault with the reason and the position; other records are not
affected. A series whose labels can't be a part key is dropped and counted by reason.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.wire.columns import Columns, Fault, Skipped
from strandline.wire.kernels.labels import MAX_LABELS, MAX_TEXT
from strandline.wire.kernels.records import COUNTS, decode_records
from strandline.wire.snappy import BadBlock, decompress_into, unpacked_length

# Column types in the order in which the kernel fills them.
SERIES_TYPES = ("i4", "i8", "i4", "u8", "u8", "u8", "i8")
SAMPLE_TYPES = ("i8", "f8")
Arrays = tuple[npt.NDArray[Any], ...]
# Rows and decompressed bytes of memory that a decoder keeps between batches. A single unusual record may need far more,
# which is not kept.
_MAX_ROWS_KEPT, _MAX_BYTES_KEPT = 1 << 21, 1 << 27


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum sizes of a record and its labels. A record above the first limit is a fault; a series above the
    others is dropped.
    """

    record_bytes: int = 32 << 20
    labels: int = 64
    label_name: int = 1024
    label_value: int = 4096

    def __post_init__(self) -> None:
        for name, most in (("labels", MAX_LABELS), ("label_name", MAX_TEXT), ("label_value", MAX_TEXT)):
            if not 0 < getattr(self, name) <= most:
                raise ValueError(f"the limit {name} = {getattr(self, name)} must lie between 1 and {most}")


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Decompressed records: record i is `data[bounds[i] : bounds[i + 1]]`. It is empty if it could not be decompressed,
    and `reasons` has the reason.
    """

    data: npt.NDArray[np.uint8]
    bounds: npt.NDArray[np.int64]
    reasons: dict[int, str]


class Decoder:
    """Decodes one batch after another in the same memory: its results are valid until it is called again.

    New memory for each batch would cost about as much as decompressing into it, because the system clears every page.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._data = np.empty(0, dtype=np.uint8)
        self._series, self._samples = _arrays(SERIES_TYPES), _arrays(SAMPLE_TYPES)

    def decode(self, bodies: Sequence[bytes]) -> Columns:
        """Decode the values of a batch of Kafka records: remote-write 1.0 requests as snappy blocks."""
        return self.decode_unpacked(self.unpack(bodies))

    def unpack(self, bodies: Sequence[bytes]) -> Unpacked:
        """The first half of decoding: decompress."""
        reasons: dict[int, str] = {}
        bounds = np.zeros(len(bodies) + 1, dtype=np.int64)
        for record, body in enumerate(bodies):
            try:
                bounds[record + 1] = unpacked_length(body, limit=self._limits.record_bytes)
            except BadBlock as error:
                reasons[record] = error.message
        np.cumsum(bounds, out=bounds)
        if not bounds[-1] <= len(self._data) <= _MAX_BYTES_KEPT:
            self._data = np.empty(bounds[-1] * 5 // 4, dtype=np.uint8)
        data = self._data[: bounds[-1]]
        for record, body in enumerate(bodies):
            if record not in reasons:
                try:
                    decompress_into(body, data[bounds[record] : bounds[record + 1]])
                except BadBlock as error:
                    reasons[record] = error.message
        return Unpacked(data, bounds, reasons)

    def decode_unpacked(self, unpacked: Unpacked) -> Columns:
        """The second half of decoding: find series and samples."""
        data, limits, reasons = unpacked.data, self._limits, dict(unpacked.reasons)
        records = len(unpacked.bounds) - 1
        fault_at = np.full(records, -1, dtype=np.int64)
        fault_at[list(reasons)] = 0
        if len(self._series[0]) > _MAX_ROWS_KEPT:
            self._series, self._samples = _arrays(SERIES_TYPES), _arrays(SAMPLE_TYPES)
        counts = np.zeros(COUNTS, dtype=np.int64)
        bounded = (limits.labels, limits.label_name, limits.label_value)
        done = n_series = n_samples = 0
        while True:
            done, n_series, n_samples = decode_records(
                data, unpacked.bounds, done, fault_at, bounded, self._series, n_series, self._samples, n_samples, counts
            )
            if done == records:
                break
            self._series = _doubled(self._series, n_series)
            self._samples = _doubled(self._samples, n_samples)
        for record in np.flatnonzero(fault_at >= 0).tolist():
            reasons.setdefault(record, f"no remote-write request: malformed in the field at byte {fault_at[record]}")
        record_of, labels_start, labels_length, key_low, key_high, metric, first_sample = (
            column[:n_series] for column in self._series
        )
        time, value = (column[:n_samples] for column in self._samples)
        return Columns(
            data=data,
            record=record_of,
            labels_start=labels_start,
            labels_length=labels_length,
            key_low=key_low,
            key_high=key_high,
            metric=metric,
            first_sample=np.append(first_sample, n_samples),
            time=time,
            value=value,
            faults=tuple(Fault(record, reasons[record]) for record in sorted(reasons)),
            skipped=Skipped.of(counts.tolist()),
        )


def batches_within(bodies: Sequence[bytes], max_bytes: int, limits: Limits) -> Iterator[tuple[int, int]]:
    """Ranges [first, behind) of a batch, in order, each of which has at most `max_bytes` decompressed bytes or is a
    single record. Nothing is decompressed, because a block starts with its decompressed length. Records that will not
    be decompressed count as 0 bytes.
    """
    first = size = 0
    for record, body in enumerate(bodies):
        try:
            length = unpacked_length(body, limit=limits.record_bytes)
        except BadBlock:
            length = 0
        if size + length > max_bytes and record > first:
            yield first, record
            first, size = record, 0
        size += length
    if first < len(bodies):
        yield first, len(bodies)


def decode_batch(bodies: Sequence[bytes], limits: Limits) -> Columns:
    """Decode one batch, with separate memory."""
    return Decoder(limits).decode(bodies)


def _arrays(kinds: Sequence[str]) -> Arrays:
    return tuple(np.empty(16, dtype=kind) for kind in kinds)


def _doubled(columns: Arrays, used: int) -> Arrays:
    longer = tuple(np.empty(2 * len(column), dtype=column.dtype) for column in columns)
    for new, old in zip(longer, columns, strict=True):
        new[:used] = old[:used]
    return longer
