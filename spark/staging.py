"""Rows of a data frame as Parquet files, which are then imported."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from strandline.jobs.exporting.target import Target

_SCHEMA = pa.schema(
    [
        ("metric", pa.string()),
        ("labels", pa.map_(pa.string(), pa.string())),
        ("time", pa.timestamp("us", tz="UTC")),
        ("value", pa.float64()),
    ]
)
_ROWS_PER_GROUP = 1 << 18


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file in a folder with a URI."""

    folder: str
    name: str
    rows: int

    @property
    def uri(self) -> str:
        """The file's URI."""
        return Target(self.folder).uri_of(self.name)


def stage(folder: str, batches: Iterable[pa.RecordBatch]) -> StagedFile | None:
    """Write the rows of a partition to a new file with a unique name; None if there are no rows. Columns may be in any
    order; other columns are ignored. A row without labels has a null or empty map.
    """
    filled: Iterator[pa.RecordBatch] = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return None
    name, rows = f"{os.urandom(12).hex()}.parquet", 0
    with Target(folder).opened(name) as file, pq.ParquetWriter(file, _SCHEMA, compression="zstd") as writer:
        batch: pa.RecordBatch | None = first
        while batch is not None:
            writer.write_batch(batch.select(_SCHEMA.names).cast(_SCHEMA), row_group_size=_ROWS_PER_GROUP)
            rows += batch.num_rows
            batch = next(filled, None)
    return StagedFile(folder, name, rows)


def mark_importing(files: Sequence[StagedFile]) -> None:
    """Record that, from now on, a job may read these files, in any process."""
    Target(files[0].folder).write(_marker(files[0]), b"")


def is_importing(files: Sequence[StagedFile]) -> bool:
    """Whether `mark_importing` was called, and the files were not removed since."""
    return bool(files) and Target(files[0].folder).read(_marker(files[0])) is not None


def remove_staged(files: Sequence[StagedFile]) -> None:
    """Remove files that are no longer needed, and their marker."""
    for file in files:
        Target(file.folder).remove(file.name)
    for file in files[:1]:
        Target(file.folder).remove(_marker(file))


def _marker(file: StagedFile) -> str:
    return f"_{file.name}.importing"
