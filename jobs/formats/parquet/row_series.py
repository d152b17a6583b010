"""The series of the rows of a record batch. Labels are only built once for all rows with the same labels."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from strandline.arrays import I64s
from strandline.jobs.formats.kernels.row_sets import hash_maps, number_rows
from strandline.jobs.formats.parquet.columns import Texts, nulls_of
from strandline.jobs.formats.parquet.mapping import ParquetMapping
from strandline.jobs.sample_block import SeriesColumns
from strandline.jobs.series_building import LabelColumns, build_series, free_slots
from strandline.wire.decode import Limits

_HASH_WORDS = 4  # Of 32 bits.
_Build = Callable[[LabelColumns], tuple[SeriesColumns, I64s] | None]


@dataclass(frozen=True, slots=True)
class _CodedTexts:
    """A dictionary-encoded column of strings: the distinct strings, the last of which is empty, and a code per row."""

    texts: Texts
    codes: npt.NDArray[np.int32]

    @classmethod
    def of(cls, column: pa.Array) -> "_CodedTexts":
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        empty = len(column.dictionary)
        dictionary = pa.concat_arrays([column.dictionary, pa.array([""], type=column.dictionary.type)])
        codes = column.indices.cast(pa.int32())
        if codes.null_count:
            codes = pc.fill_null(codes, empty)
        found = np.asarray(codes.to_numpy(zero_copy_only=False))
        if len(found) and not 0 <= found.min() <= found.max() <= empty:
            raise pa.ArrowInvalid(f"a dictionary of {empty} strings has no string {found.max()}")
        return cls(Texts.of(dictionary), found)

    def spans(self, rows: I64s) -> tuple[I64s, I64s]:
        """The addresses and lengths of the strings of some rows."""
        return self.texts.spans(self.codes[rows].astype(np.int64))


@dataclass(frozen=True, slots=True)
class _MapColumn:
    """A column of maps: the range of entries of each row, and the names and values of the entries."""

    begins: I64s
    ends: I64s
    names: _CodedTexts
    values: _CodedTexts

    @classmethod
    def of(cls, column: pa.MapArray) -> "_MapColumn":
        offsets = np.asarray(column.offsets.to_numpy(zero_copy_only=False)).astype(np.int64)
        entries = len(column.keys)
        if len(column.items) != entries or offsets[0] < 0 or offsets[-1] > entries or (np.diff(offsets) < 0).any():
            raise pa.ArrowInvalid("names and values of a map do not match")
        begins = offsets[:-1]
        ends = np.where(nulls_of(column), begins, offsets[1:])
        return cls(begins, ends, _CodedTexts.of(column.keys), _CodedTexts.of(column.items))

    def hashes(self) -> npt.NDArray[np.uint32]:
        """The hash of each row's entries, as four 32-bit words."""
        low, high = np.empty(len(self.begins), dtype=np.uint64), np.empty(len(self.begins), dtype=np.uint64)
        hash_maps(self.begins, self.ends, np.stack((self.names.codes, self.values.codes), axis=1), low, high)
        return np.stack((low, high), axis=1).view(np.uint32)


def series_of_rows(
    batch: pa.RecordBatch, mapping: ParquetMapping, limits: Limits, max_label_bytes: int | None = None
) -> tuple[SeriesColumns, I64s] | None:
    """The distinct series of a batch, and for each row its series, or the negated `Verdict` if it has none. None if the
    labels of several series would take more than `max_label_bytes`.
    """
    rows = batch.num_rows
    columns = [_CodedTexts.of(batch.column(column)) for _, column in mapping.labels]
    maps = None if mapping.labels_map is None else _MapColumn.of(batch.column(mapping.labels_map))
    words = np.zeros((rows, len(columns) + (0 if maps is None else _HASH_WORDS)), dtype=np.uint32)
    for index, column in enumerate(columns):
        words[:, index] = column.codes
    if maps is not None:
        words[:, len(columns) :] = maps.hashes()
    set_of, first_rows = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    keys = np.empty((2, rows), dtype=np.uint64)
    count = number_rows(words, free_slots(rows), keys[0], keys[1], set_of, first_rows)

    def build(labels: LabelColumns) -> tuple[SeriesColumns, I64s] | None:
        if (
            max_label_bytes is not None
            and count > 1
            and int(labels.name_lengths.sum() + labels.value_lengths.sum()) > max_label_bytes
        ):
            return None
        return build_series(labels, limits)

    built = _with_labels(first_rows[:count], columns, maps, mapping, build)
    if built is None:
        return None
    series, series_of = built
    return series, series_of[set_of]


def _with_labels(
    rows: I64s, columns: list[_CodedTexts], maps: _MapColumn | None, mapping: ParquetMapping, build: _Build
) -> tuple[SeriesColumns, I64s] | None:
    """Call `build` with the labels of some rows: constants, then label columns, then map entries. Their memory is alive
    during the call.
    """
    constants = Texts.of(pa.array([text for label in mapping.constants for text in label], type=pa.string()))
    names = Texts.of(pa.array([name for name, _ in mapping.labels], type=pa.string()))
    fixed = len(mapping.constants) + len(columns)
    entries = np.zeros(len(rows), dtype=np.int64) if maps is None else maps.ends[rows] - maps.begins[rows]
    first_label = np.append(0, np.cumsum(entries + fixed))
    spans = np.empty((4, int(first_label[-1])), dtype=np.int64)
    begins = first_label[:-1]
    texts, lengths = constants.spans(np.arange(2 * len(mapping.constants)))
    for index in range(len(mapping.constants)):
        at, name, value = begins + index, 2 * index, 2 * index + 1
        spans[0, at], spans[1, at] = texts[name], lengths[name]
        spans[2, at], spans[3, at] = texts[value], lengths[value]
    label_names, name_lengths = names.spans(np.arange(len(columns)))
    for index, column in enumerate(columns):
        at = begins + len(mapping.constants) + index
        spans[0, at], spans[1, at] = label_names[index], name_lengths[index]
        spans[2, at], spans[3, at] = column.spans(rows)
    if maps is not None:
        # The indices of all entries of the rows, from the begin of each row.
        of_row = np.repeat(np.arange(len(rows)), entries)
        nth = np.arange(len(of_row)) - np.repeat(np.cumsum(entries) - entries, entries)
        at, entry = begins[of_row] + fixed + nth, maps.begins[rows][of_row] + nth
        spans[0, at], spans[1, at] = maps.names.spans(entry)
        spans[2, at], spans[3, at] = maps.values.spans(entry)
    return build(LabelColumns(first_label, spans[0], spans[1], spans[2], spans[3]))
