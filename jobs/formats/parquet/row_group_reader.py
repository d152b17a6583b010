"""Reads the samples of row groups of a Parquet file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from strandline.arrays import Bools, I64s
from strandline.jobs.bad_records import MAX_EXAMPLES, BadRecord, BadRecords
from strandline.jobs.formats.byte_ranges import UnreadableSource, named_errors
from strandline.jobs.formats.parquet.columns import nulls_of, times_of, values_of
from strandline.jobs.formats.parquet.mapping import ParquetMapping
from strandline.jobs.formats.parquet.row_series import series_of_rows
from strandline.jobs.formats.parquet.watched_file import WatchedFile
from strandline.jobs.sample_block import SampleBlock, SeriesColumns
from strandline.jobs.series_building import LABEL_REASONS
from strandline.wire.decode import Limits

_STREAM_BUFFER = 1 << 20  # Per column. Without it, pyarrow would read all columns of a row group into memory.
_REMEDY = "Copy the file again, or exclude it"


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group: its index in the file, its first row, its number of rows, and its size before compression."""

    number: int
    first_row: int
    rows: int
    size: int


def row_groups(fs: FileSystem, path: str) -> list[RowGroup]:
    """The row groups of a file. Raises `UnreadableSource`."""
    with _opened(fs, path) as file:
        return _row_groups(file)


def check_columns(fs: FileSystem, path: str, mapping: ParquetMapping) -> None:
    """Raise `UnusableMapping` unless a file has the columns of the mapping with supported types."""
    with _opened(fs, path) as file:
        mapping.check(path, file.schema_arrow)


def read_row_groups(
    fs: FileSystem,
    path: str,
    groups: Sequence[int],
    mapping: ParquetMapping,
    max_rows: int,
    *,
    limits: Limits | None = None,
    max_label_bytes: int | None = None,
) -> Iterator[SampleBlock]:
    """The samples of some row groups, in blocks of `max_rows` rows; the last block of a row group may have fewer. A
    block with more than `max_label_bytes` of labels is halved, repeatedly if necessary.

    The same bytes and arguments result in the same blocks. Memory is limited to the rows of one block and one or two
    pages per column. Raises `UnreadableSource` and `UnusableMapping`.
    """
    if max_rows < 1:
        raise ValueError(f"max_rows = {max_rows} must be positive")
    rules = _Rules(mapping, limits or Limits(), max_label_bytes)
    with _opened(fs, path) as file:
        mapping.check(path, file.schema_arrow)
        known = _row_groups(file)
        if missing := [number for number in groups if not 0 <= number < len(known)]:
            raise UnreadableSource(
                f"{path} has {len(known)} row groups, but not row group {missing[0]}",
                remedy="The file was replaced: plan the import again",
            )
        metadata, texts = file.metadata, _label_leaves(file, mapping)
    with _opened(fs, path, texts, metadata) as file:
        for number in groups:
            yield from _blocks(file, known[number], max_rows, rules)


@dataclass(frozen=True, slots=True)
class _Rules:
    """How rows become samples."""

    mapping: ParquetMapping
    limits: Limits
    max_label_bytes: int | None


def _blocks(file: pq.ParquetFile, group: RowGroup, max_rows: int, rules: _Rules) -> Iterator[SampleBlock]:
    first_row, end = group.first_row, group.first_row + group.rows
    for batch in _batches(file, group.number, rules.mapping.columns, max_rows):
        yield from _bounded(batch, group, first_row, rules)
        first_row += batch.num_rows
    if first_row != end:
        found = first_row - group.first_row
        raise pa.ArrowInvalid(f"row group {group.number} has {found} rows, but {group.rows} by its metadata")


@contextmanager
def _opened(
    fs: FileSystem, path: str, texts: Sequence[str] = (), metadata: pq.FileMetaData | None = None
) -> Iterator[pq.ParquetFile]:
    """An open file that reads the columns `texts` as dictionaries. `metadata` is used instead of reading it again."""
    with named_errors(path):
        source = fs.open_input_file(path)
    watched = WatchedFile(source)
    try:
        with _parquet_errors(path, watched):
            file = pq.ParquetFile(
                watched,
                metadata=metadata,
                read_dictionary=list(texts),
                buffer_size=_STREAM_BUFFER,
                pre_buffer=False,
                page_checksum_verification=True,
            )
        with file, _parquet_errors(path, watched):
            yield file
    finally:
        source.close()


@contextmanager
def _parquet_errors(path: str, watched: WatchedFile) -> Iterator[None]:
    """Raise pyarrow's errors about damaged content as `UnreadableSource` with the name of the file. Errors of the file
    system are raised unchanged, because they may be temporary.
    """
    try:
        yield
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        if watched.failure is not None:
            raise watched.failure from None
        raise UnreadableSource(f"{path} is not a valid Parquet file: {error}", remedy=_REMEDY) from error


def _row_groups(file: pq.ParquetFile) -> list[RowGroup]:
    metadata = file.metadata
    found: list[RowGroup] = []
    first_row = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        # Not the sizes of columns: reading damaged column metadata crashes pyarrow.
        found.append(RowGroup(number, first_row, group.num_rows, group.total_byte_size))
        first_row += group.num_rows
    return found


def _label_leaves(file: pq.ParquetFile, mapping: ParquetMapping) -> list[str]:
    """The Parquet leaf columns of labels. A map has two, for names and values, whose paths depend on the writer."""
    wanted = {column for _, column in mapping.labels} | {mapping.labels_map}
    paths = [file.schema.column(index).path for index in range(len(file.schema))]
    return [path for path in paths if path in wanted or path.split(".")[0] in wanted]


def _batches(file: pq.ParquetFile, number: int, columns: list[str], max_rows: int) -> Iterator[pa.RecordBatch]:
    """A row group in batches of exactly `max_rows` rows except the last. Those of pyarrow may be shorter."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for found in file.iter_batches(max_rows, row_groups=[number], columns=columns, use_threads=False):
        batch = found
        while rows + batch.num_rows >= max_rows:
            missing = max_rows - rows
            yield _joined([*held, batch.slice(0, missing)])
            held, rows, batch = [], 0, batch.slice(missing)
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
    if held:
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (joined,) = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().to_batches()
    return joined


def _bounded(batch: pa.RecordBatch, group: RowGroup, first_row: int, rules: _Rules) -> Iterator[SampleBlock]:
    """A batch as a block, or as several if its labels take too much memory."""
    found = series_of_rows(batch, rules.mapping, rules.limits, rules.max_label_bytes)
    if found is not None:
        yield _block(batch, rules.mapping, group, first_row, found)
        return
    half = batch.num_rows // 2
    yield from _bounded(batch.slice(0, half), group, first_row, rules)
    yield from _bounded(batch.slice(half), group, first_row + half, rules)


def _block(
    batch: pa.RecordBatch, mapping: ParquetMapping, group: RowGroup, first_row: int, found: tuple[SeriesColumns, I64s]
) -> SampleBlock:
    series, row_series = found
    time, value = batch.column(mapping.time), batch.column(mapping.value)
    times, outside = times_of(time, mapping.time_unit)
    faults = [("time is null", nulls_of(time)), ("value is null", nulls_of(value)), ("time out of range", outside)]
    faults += [(reason, row_series == -verdict) for verdict, reason in LABEL_REASONS.items()]
    good, bad = _judge(faults, group, first_row)
    values = values_of(value)
    if bad.total:
        row_series, times, values = row_series[good], times[good], values[good]
    return SampleBlock(series, row_series.astype(np.int32), times, values, batch.num_rows, bad)


def _judge(faults: list[tuple[str, Bools]], group: RowGroup, first_row: int) -> tuple[Bools, BadRecords]:
    """Which rows are valid, and the others as bad records, each with its first fault."""
    good = np.ones(len(faults[0][1]), dtype=np.bool_)
    counts: dict[str, int] = {}
    examples: list[BadRecord] = []
    for reason, rows in faults:
        found: I64s = np.flatnonzero(rows & good)
        if not len(found):
            continue
        counts[reason] = len(found)
        good[found] = False
        for row in (first_row + found[:MAX_EXAMPLES]).tolist():
            position = f"row {row - group.first_row} of row group {group.number}"
            examples.append(BadRecord(row, 0, reason, position))
    return good, BadRecords(counts, tuple(sorted(examples)[:MAX_EXAMPLES]))
