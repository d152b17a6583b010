"""Parquet: tables with a column for times and one for values, and labels as columns, as a map, or both.

In come a `pyarrow.fs.FileSystem`, a path and a mapping; out go `SampleBlock`s. A file is cut by its row groups
(`row_groups`), each of which can be read alone (`read_row_groups`). A record is a row.
"""

from strandline.jobs.formats.parquet.mapping import EXPORT_MAPPING, ParquetMapping, UnusableMapping
from strandline.jobs.formats.parquet.reading import RowGroup, check_columns, read_row_groups, row_groups

__all__ = [
    "EXPORT_MAPPING",
    "ParquetMapping",
    "RowGroup",
    "UnusableMapping",
    "check_columns",
    "read_row_groups",
    "row_groups",
]
