"""Builds a `SampleBlock` from columns that grow while a kernel fills them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, U64s
from strandline.index.kernels.key_table import EMPTY, WORDS, rehash
from strandline.jobs.bad_records import MAX_EXAMPLES, MAX_EXCERPT, BadRecord, BadRecords
from strandline.jobs.formats.kernels.block import (
    AT,
    CURSOR,
    DONE,
    EXAMPLE_WORDS,
    EXAMPLES,
    HARD_NUMBERS,
    HARD_WORDS,
    LABEL_BYTES,
    LINE,
    MORE_GROUPS,
    MORE_LABELS,
    MORE_SAMPLES,
    MORE_SERIES,
    NULLS,
    RECORDS,
    SAMPLES,
    SERIES,
    UNUSED_SERIES,
)
from strandline.jobs.formats.reasons import REASONS, TEXTS, Reason
from strandline.jobs.sample_block import SampleBlock, SeriesColumns
from strandline.wire.decode import Limits

Bytes = npt.NDArray[np.uint8]
Array = npt.NDArray[Any]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BYTES_PER_SAMPLE = 48  # An estimate: the columns of common inputs grow at most once.
_MIN_BYTES_PER_SAMPLE = 16  # In the output; slightly less than a sample takes.
_MIN_SLOTS = 1 << 10
_MAX_SLOTS = 1 << 20  # Of a bounded block: tables of about 50 MB.


class BlockBuilder:
    """The arguments of a format's kernel except its options: the input, columns to fill, hash tables and counts.

    Skips a byte-order mark at the start of a file.
    """

    def __init__(
        self, data: Bytes, offset: int, limits: Limits, *, values: int = 1, max_bytes: int | None = None
    ) -> None:
        """With `max_bytes`, the block ends before the record for which its columns would have to grow beyond about
        twice this size of labels or samples. So memory is limited, and the end of a block depends on the input alone. A
        block has at least one record.
        """
        self._max_bytes = max_bytes
        self.data = np.ascontiguousarray(data, dtype=np.uint8)
        self.address: int = self.data.ctypes.data
        self._offset = offset
        self._limits = (limits.labels, limits.label_name, limits.label_value)
        self.cursor = np.zeros(CURSOR, dtype=np.int64)
        self.cursor[LINE] = 1
        if offset == 0 and self.data[:3].tobytes() == _BYTE_ORDER_MARK:
            self.cursor[AT] = len(_BYTE_ORDER_MARK)
        room = max(64, len(self.data) // _BYTES_PER_SAMPLE)
        self._samples: tuple[Array, Array, Array] = (
            np.empty(room, dtype=np.int32),
            np.empty(room, dtype=np.int64),
            np.empty(room, dtype=np.float64),
        )
        self._series: tuple[Array, Array, Array, Array] = (
            np.zeros(_MIN_SLOTS // 2 + 1, dtype=np.int64),
            np.empty(1 << 16, dtype=np.uint8),
            np.empty(_MIN_SLOTS // 2, dtype=np.uint64),
            np.empty(_MIN_SLOTS // 2, dtype=np.uint64),
        )
        self._known, self._groups = _slots(_MIN_SLOTS), _slots(_MIN_SLOTS)
        self._members = np.empty(_MIN_SLOTS // 2 * values, dtype=np.int64)
        self._counts = np.zeros(REASONS, dtype=np.int64)
        self._examples = np.zeros((MAX_EXAMPLES, EXAMPLE_WORDS), dtype=np.int64)
        self._hard = np.empty((64, HARD_WORDS), dtype=np.int64)

    @property
    def state(self) -> tuple[Any, ...]:
        """The arguments of kernels except the input."""
        bad = self._counts, self._examples, self._hard
        return (self.cursor, self._samples, self._series, self._known, self._groups, self._members, bad, self._limits)

    def fill(self, step: Callable[[], int]) -> SampleBlock:
        """Call a kernel, with longer columns each time, until it has read all of the input."""
        while (need := step()) != DONE:
            if self._is_full(need):
                # The record that did not fit may have added series.
                self.cursor[UNUSED_SERIES] = 1
                break
            self._grow(need)
        return self._block()

    def _is_full(self, need: int) -> bool:
        if self._max_bytes is None or not self.cursor[RECORDS]:
            return False
        if need == MORE_LABELS:
            return len(self._series[1]) >= 2 * self._max_bytes
        if need == MORE_SAMPLES:
            return len(self._samples[0]) >= self._max_bytes // _MIN_BYTES_PER_SAMPLE
        if need == MORE_SERIES:
            return len(self._known) // WORDS >= _MAX_SLOTS
        return need == MORE_GROUPS and len(self._groups) // WORDS >= _MAX_SLOTS

    def _grow(self, need: int) -> None:
        if need == MORE_SAMPLES:
            row, times, values = self._samples
            self._samples = _longer(row), _longer(times), _longer(values)
        elif need == MORE_SERIES:
            starts, labels, low, high = self._series
            self._series = _longer(starts), labels, _longer(low), _longer(high)
            self._known = _rehashed(self._known)
        elif need == MORE_LABELS:
            starts, labels, low, high = self._series
            self._series = starts, _longer(labels), low, high
        elif need == MORE_GROUPS:
            self._groups, self._members = _rehashed(self._groups), _longer(self._members)
        else:
            self._hard = _longer(self._hard)

    def _block(self) -> SampleBlock:
        cursor = self.cursor
        row, times, values = (column[: cursor[SAMPLES]] for column in self._samples)
        for sample, start, length in self._hard[: cursor[HARD_NUMBERS]].tolist():
            values[sample] = float(self.data[start : start + length].tobytes())
        starts, labels, low, high = self._series
        used = cursor[SERIES]
        series = SeriesColumns(starts[: used + 1], labels[: cursor[LABEL_BYTES]], low[:used], high[:used])
        if cursor[UNUSED_SERIES]:
            series, row = _without_unused(series, row)
        return SampleBlock(
            series=series,
            row=row,
            times=times,
            values=values,
            records=int(cursor[RECORDS]),
            bad=self._bad(),
            nulls=int(cursor[NULLS]),
            unread=len(self.data) - int(cursor[AT]),
        )

    def _bad(self) -> BadRecords:
        examples = tuple(
            BadRecord(self._offset + start, line, TEXTS[Reason(reason)], self._excerpt(start, end))
            for start, end, line, reason in self._examples[: self.cursor[EXAMPLES]].tolist()
        )
        found = np.flatnonzero(self._counts).tolist()
        return BadRecords({TEXTS[Reason(reason)]: int(self._counts[reason]) for reason in found}, examples)

    def _excerpt(self, start: int, end: int) -> str:
        # A character takes at most four bytes.
        text = self.data[start : min(end, start + 4 * MAX_EXCERPT)].tobytes().decode("utf-8", "replace")
        return text.rstrip("\r\n")[:MAX_EXCERPT]


def _slots(count: int) -> U64s:
    return np.full(count * WORDS, EMPTY, dtype=np.uint64)


def _rehashed(slots: U64s) -> U64s:
    longer = _slots(4 * len(slots) // WORDS)
    rehash(slots, longer)
    return longer


def _longer(column: Array) -> Array:
    """The column with four times its length, like its hash table. Untouched pages cost no memory."""
    longer = np.empty((4 * len(column), *column.shape[1:]), dtype=column.dtype)
    longer[: len(column)] = column
    return longer


def _without_unused(series: SeriesColumns, row: npt.NDArray[np.int32]) -> tuple[SeriesColumns, npt.NDArray[np.int32]]:
    """Remove series without samples, which bad records may have added."""
    used = np.zeros(len(series), dtype=np.bool_)
    used[row] = True
    lengths: I64s = np.diff(series.starts)
    starts = np.zeros(int(used.sum()) + 1, dtype=np.int64)
    np.cumsum(lengths[used], out=starts[1:])
    kept = SeriesColumns(starts, series.labels[np.repeat(used, lengths)], series.key_low[used], series.key_high[used])
    new_rows = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return kept, new_rows[row]
