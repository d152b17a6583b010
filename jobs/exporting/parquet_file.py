"""Writes a sorted Parquet file by row groups."""

from collections.abc import Iterable

import numpy as np
import pyarrow.parquet as pq

from strandline.jobs.exporting.target import Target
from strandline.jobs.outcome import FileWritten
from strandline.jobs.reading.arrow_batches import DICTIONARY_SCHEMA, SampleColumns, dictionary_batches

ROWS_PER_GROUP = 1 << 18
# The limit of a column's dictionary. Above it, Parquet would write each label as plain text.
_DICTIONARY_BYTES = 64 << 20
_DICTIONARY_COLUMNS = ["metric", "labels.key_value.key", "labels.key_value.value"]


def write_file(target: Target, path: str, pieces: Iterable[SampleColumns]) -> FileWritten | None:
    """Write samples, which must be sorted. Without samples, returns None and writes no file."""
    pieces = iter(pieces)
    first = next(pieces, None)
    if first is None:
        return None
    rows = 0
    with target.opened(path) as file:
        with pq.ParquetWriter(
            file,
            DICTIONARY_SCHEMA,
            compression="zstd",
            compression_level=1,
            use_dictionary=_DICTIONARY_COLUMNS,
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
            # Not for labels: statistics of map columns take a third of the time, and readers can't use them to skip.
            write_statistics=["metric", "time", "value"],
            column_encoding={"time": "DELTA_BINARY_PACKED", "value": "PLAIN"},
            # So that readers see plain types, not the dictionaries of the Arrow schema.
            store_schema=False,
        ) as writer:
            piece: SampleColumns | None = first
            while piece is not None:
                for batch in dictionary_batches(piece, ROWS_PER_GROUP):
                    writer.write_batch(batch, row_group_size=ROWS_PER_GROUP)
                    rows += batch.num_rows
                piece = next(pieces, None)
        size, sha256 = file.size, file.sha256
    return FileWritten(path.rpartition("/")[2], rows, size, sha256)


def samples_by_hour(columns: SampleColumns, hour_ms: int) -> dict[int, int]:
    """The number of samples in each hour, by the start of the hour."""
    hours = columns.time // hour_ms
    first = int(hours.min())
    counts = np.bincount(hours - first)
    return {(first + int(at)) * hour_ms: int(counts[at]) for at in np.flatnonzero(counts)}
