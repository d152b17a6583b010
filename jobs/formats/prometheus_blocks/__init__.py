"""Prometheus blocks: the folder of a TSDB or of a snapshot, as `promtool` and Thanos write it, too.

In come a `pyarrow.fs.FileSystem` and a path; out go `SampleBlock`s. A block's series are divided into ranges
(`plan_ranges`), each of which can be read alone (`read_range`). Its index may have version 1 or 2; chunks must be in
XOR encoding. Chunks of native histograms and of unknown encodings are bad records.
"""

from strandline.jobs.formats.prometheus_blocks.errors import DamagedBlock
from strandline.jobs.formats.prometheus_blocks.finding import BlockInfo, find_blocks
from strandline.jobs.formats.prometheus_blocks.planning import SeriesRange, plan_ranges
from strandline.jobs.formats.prometheus_blocks.reading import read_range

__all__ = ["BlockInfo", "DamagedBlock", "SeriesRange", "find_blocks", "plan_ranges", "read_range"]
