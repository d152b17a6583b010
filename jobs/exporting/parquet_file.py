"""One sorted Parquet file, written a row group at a time."""

from collections.abc import Iterable

import numpy as np
import pyarrow.parquet as pq

from strandline.jobs.exporting.target import Target
from strandline.jobs.outcome import FileWritten
from strandline.jobs.reading.arrow_batches import DICTIONARY_SCHEMA, SampleColumns, dictionary_batches

ROWS_PER_GROUP = 1 << 18
# Values of labels that go into a dictionary: with more bytes than this Parquet would write each as a text.
_DICTIONARY_BYTES = 64 << 20
_TEXTS = ["metric", "labels.key_value.key", "labels.key_value.value"]


def write_file(target: Target, path: str, pieces: Iterable[SampleColumns]) -> FileWritten | None:
    """Write samples that come in order; None, and no file, if there are none."""
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
            use_dictionary=_TEXTS,
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
            # Those of labels would cost a third of the time, and serve nobody: a reader can't skip by them.
            write_statistics=["metric", "time", "value"],
            column_encoding={"time": "DELTA_BINARY_PACKED", "value": "PLAIN"},
            # The types in the file are plain ones. That texts came by number is nobody's concern.
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
    """How many samples lie in each hour, by its beginning."""
    hours = columns.time // hour_ms
    first = int(hours.min())
    counts = np.bincount(hours - first)
    return {(first + int(at)) * hour_ms: int(counts[at]) for at in np.flatnonzero(counts)}
