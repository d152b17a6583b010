"""Parquet files of samples."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from strandline.jobs.formats.parquet import (
    ParquetMapping,
    read_row_groups,
    row_groups,
)
from strandline.jobs.sample_block import SampleBlock
from strandline.wire.decode import Limits

FS = LocalFileSystem()
MAP = pa.map_(pa.string(), pa.string())
VALUE = ParquetMapping.from_table({"value": "value", "time": "time", "metric": "up"})


def write(folder: Path, table: pa.Table, **options: Any) -> str:
    path = folder / "samples.parquet"
    pq.write_table(table, path, **options)
    return str(path)


def read(
    path: str, mapping: ParquetMapping, *, most: int = 1 << 20, limits: Limits | None = None, labels: int | None = None
) -> list[SampleBlock]:
    groups = [group.number for group in row_groups(FS, path)]
    return list(read_row_groups(FS, path, groups, mapping, most, limits=limits, max_label_bytes=labels))
