"""Rows that are not sealed yet: preallocated columns, filled from the front."""

from dataclasses import dataclass, replace

import numpy as np

from strandline.arrays import F64s, I64s, U32s
from strandline.arrays import Rows as Positions
from strandline.store.buffer.kernels.rows import append_rows, one_sample_each
from strandline.store.buffer.value_search import positions_of, positions_of_any

BYTES_PER_ROW = 20
ROWS_PER_CHUNK = 4096
_NONE = np.empty(0, dtype=np.int64)


class RowBounds:
    """The minimum and maximum series of each `ROWS_PER_CHUNK` rows of a column that is filled from the front. Scrapes
    deliver series roughly in the order of their numbers, so a query for a few series can skip most chunks.

    Readers compute the bounds of chunks that were filled since the last read. Concurrent readers write the same values.
    """

    def __init__(self, capacity: int) -> None:
        chunks = capacity // ROWS_PER_CHUNK
        self._least, self._greatest = np.empty(chunks, dtype=np.uint32), np.empty(chunks, dtype=np.uint32)
        self._noted = 0

    def rows_of(self, series: U32s, number: np.uint32) -> Positions:
        """Return the rows of a series in a column, in order."""
        noted, chunks = self._noted, len(series) // ROWS_PER_CHUNK
        if noted < chunks:
            new = series[noted * ROWS_PER_CHUNK : chunks * ROWS_PER_CHUNK].reshape(-1, ROWS_PER_CHUNK)
            self._least[noted:chunks], self._greatest[noted:chunks] = new.min(axis=1), new.max(axis=1)
            self._noted = max(chunks, self._noted)
        return positions_of(series, number, self._least[:chunks], self._greatest[:chunks], ROWS_PER_CHUNK)


@dataclass(frozen=True, slots=True)
class Rows:
    """Samples in order of arrival, one per row. `bounds` speeds up the search for a few series."""

    series: U32s
    time: I64s
    value: F64s
    bounds: RowBounds | None = None

    def __len__(self) -> int:
        return len(self.series)

    def of_series(self, numbers: U32s) -> "Rows":
        """Return the rows of a few series."""
        if self.bounds is None:
            at = positions_of_any(self.series, numbers)
        else:
            each = [self.bounds.rows_of(self.series, number) for number in numbers]
            at = each[0] if len(each) == 1 else np.sort(np.concatenate([_NONE, *each]))
        return replace(self, series=self.series[at], time=self.time[at], value=self.value[at])


@dataclass(frozen=True, slots=True)
class IncomingRows:
    """Decoded rows: row i is `series[i]` with the samples `[first_sample[i], first_sample[i + 1])`.

    `defined` is the number of defined series. `one_sample_each`: every row has exactly one sample and none is refused.
    """

    series: U32s
    first_sample: I64s
    time: I64s
    value: F64s
    defined: int
    one_sample_each: bool

    @classmethod
    def of(cls, series: U32s, first_sample: I64s, time: I64s, value: F64s, defined: int) -> "IncomingRows":
        """Check that the columns fit together, and whether each row has one sample."""
        if len(first_sample) != len(series) + 1 or not first_sample[-1] <= len(time) == len(value):
            raise ValueError(
                f"{len(series)} rows with {len(first_sample)} bounds up to {first_sample[-1:]}, for {len(time)} times "
                f"and {len(value)} values"
            )
        return cls(series, first_sample, time, value, defined, one_sample_each(series, first_sample, defined))


class OpenRows:
    """Columns with a fixed number of rows. One thread appends; a snapshot keeps the rows of its moment.

    A row is never overwritten while a snapshot may read it: `reset` reuses the columns only if there was no snapshot,
    and allocates new ones otherwise. So a snapshot costs no copy, and ingestion pays one allocation.
    """

    def __init__(self, capacity: int) -> None:
        self._series = np.empty(capacity, dtype=np.uint32)
        self._time = np.empty(capacity, dtype=np.int64)
        self._value = np.empty(capacity, dtype=np.float64)
        self._bounds = RowBounds(capacity)
        self._used = 0
        self._is_shared = False

    def __len__(self) -> int:
        return self._used

    @property
    def is_full(self) -> bool:
        """Whether there is no space for another row."""
        return self._used == len(self._series)

    @property
    def nbytes(self) -> int:
        """The memory of the columns, filled or not."""
        return len(self._series) * BYTES_PER_ROW

    def fill(self, incoming: IncomingRows, row: int, sample: int) -> tuple[int, int]:
        """Take samples from a row and sample, until the columns are full. Return where to continue."""
        if incoming.one_sample_each:
            return self._copy_columns(incoming, row), 0
        row, sample, used = append_rows(
            incoming.series,
            incoming.first_sample,
            incoming.time,
            incoming.value.view(np.int64),
            row,
            sample,
            incoming.defined,
            self._series,
            self._time,
            self._value.view(np.int64),
            self._used,
        )
        if used < 0:
            raise ValueError(f"row {row} has series {incoming.series[row]}, but only {incoming.defined} are defined")
        self._used = used
        return row, sample

    def _copy_columns(self, incoming: IncomingRows, row: int) -> int:
        """The same for rows of one sample each, which most records have: copies whole columns."""
        stop = min(len(incoming.series), row + len(self._series) - self._used)
        first = int(incoming.first_sample[0])
        used = self._used + stop - row
        to = slice(self._used, used)
        self._series[to] = incoming.series[row:stop]
        self._time[to] = incoming.time[first + row : first + stop]
        self._value[to] = incoming.value[first + row : first + stop]
        self._used = used
        return stop

    def rows(self) -> Rows:
        """The current rows, for the writer itself."""
        used = self._used
        return Rows(self._series[:used], self._time[:used], self._value[:used])

    def snapshot(self) -> Rows:
        """The current rows, for any thread."""
        # Set before the rows are read, also if there are none yet: the writer continues concurrently, and must not
        # reuse these columns.
        self._is_shared = True
        return replace(self.rows(), bounds=self._bounds)

    def reset(self) -> "OpenRows":
        """Return columns for the next rows, once these are sealed."""
        if self._is_shared:
            return OpenRows(len(self._series))
        self._used = 0
        return self
