"""OpenMetrics text, as `promtool tsdb create-blocks-from openmetrics` takes it.

A line is `name{label="value"} value timestamp`, with or without an exemplar behind it, or
`{"any name", label="value"} value timestamp`. Lines that begin with `#` are comments, of which `# EOF` ends the input.
Two things are taken that promtool refuses: more than one space or tab between the parts, and comments of any kind.

promtool reads the timestamp, in seconds, as a double, multiplies that by 1000 and cuts off the rest toward zero. Here
the decimal digits themselves are shifted, and then cut off toward zero. The two agree for the milliseconds of this
century. Where they don't, the product of doubles fell below the millisecond: promtool makes 131653272 of 131653.273.
"""

import numpy as np

from strandline.jobs.formats.block_builder import BlockBuilder, Bytes
from strandline.jobs.formats.kernels.openmetrics_lines import read_lines
from strandline.jobs.sample_block import SampleBlock
from strandline.wire.decode import Limits

_METRIC_LABEL = np.frombuffer(b"__name__", dtype=np.uint8)


def parse_openmetrics(
    data: Bytes, offset: int, limits: Limits | None = None, *, most: int | None = None
) -> SampleBlock:
    """Read whole lines that begin at a byte of their file. Comments and empty lines are no records.

    A line behind `# EOF` in the same input is a bad record, and so is a sample without a timestamp. With
    `most` the block ends where `BlockBuilder` says.
    """
    builder = BlockBuilder(data, offset, limits or Limits(), most=most)

    def step() -> int:
        need: int = read_lines(builder.address, len(builder.data), _METRIC_LABEL.ctypes.data, builder.state)
        return need

    return builder.fill(step)
