"""Prometheus blocks: the folder of a TSDB or of a snapshot. `promtool` and Thanos write the same format.

In: a `pyarrow.fs.FileSystem` and a path. Out: `SampleBlock`s. `find_blocks` lists the blocks of a folder. The series of
a block are divided into ranges (`plan_ranges`), which can be read independently (`read_range`). The index may have
version 1 or 2, and chunks must have the XOR encoding. Native histograms and chunks with unknown encodings are bad
records.
"""

from strandline.jobs.formats.prometheus_blocks.block_info import BlockInfo, find_blocks
from strandline.jobs.formats.prometheus_blocks.errors import DamagedBlock
from strandline.jobs.formats.prometheus_blocks.range_reader import read_range
from strandline.jobs.formats.prometheus_blocks.series_ranges import SeriesRange, plan_ranges

__all__ = ["BlockInfo", "DamagedBlock", "SeriesRange", "find_blocks", "plan_ranges", "read_range"]
