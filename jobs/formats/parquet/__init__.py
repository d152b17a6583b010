"""Parquet: tables with a column of times and one of values, and labels as columns, as a map, or both.

In: a `pyarrow.fs.FileSystem`, a path and a mapping. Out: `SampleBlock`s. A file is divided by its row groups
(`row_groups`), which can be read independently (`read_row_groups`). A record is a row.
"""

from strandline.jobs.formats.parquet.mapping import EXPORT_MAPPING, ParquetMapping, UnusableMapping
from strandline.jobs.formats.parquet.row_group_reader import RowGroup, check_columns, read_row_groups, row_groups

__all__ = [
    "EXPORT_MAPPING",
    "ParquetMapping",
    "RowGroup",
    "UnusableMapping",
    "check_columns",
    "read_row_groups",
    "row_groups",
]
