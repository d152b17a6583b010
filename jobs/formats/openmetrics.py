"""OpenMetrics text, as accepted by `promtool tsdb create-blocks-from openmetrics`.

A line is `name{label="value"} value timestamp`, optionally followed by an exemplar, or
`{"any name", label="value"} value timestamp`. Lines that begin with `#` are comments; `# EOF` ends the input. Unlike
promtool, the parser accepts more than one space or tab between the parts, and any comments.

promtool parses the timestamp, in seconds, as a double, multiplies it by 1000 and truncates it toward zero. This parser
shifts the decimal digits and truncates them toward zero. The results are equal for the milliseconds of this century.
Where they differ, the product of doubles is below the millisecond: promtool reads 131653.273 as 131653272.
"""

import numpy as np

from strandline.jobs.formats.block_builder import BlockBuilder, Bytes
from strandline.jobs.formats.kernels.openmetrics_lines import read_lines
from strandline.jobs.sample_block import SampleBlock
from strandline.wire.decode import Limits

_METRIC_LABEL = np.frombuffer(b"__name__", dtype=np.uint8)


def parse_openmetrics(
    data: Bytes, offset: int, limits: Limits | None = None, *, max_bytes: int | None = None
) -> SampleBlock:
    """Parse complete lines; `offset` is their position in the file. Comments and empty lines are not records.

    A line after `# EOF` in the same input is a bad record, and so is a sample without a timestamp. With `max_bytes`,
    the block may end early, see `BlockBuilder`.
    """
    builder = BlockBuilder(data, offset, limits or Limits(), max_bytes=max_bytes)

    def step() -> int:
        need: int = read_lines(builder.address, len(builder.data), _METRIC_LABEL.ctypes.data, builder.state)
        return need

    return builder.fill(step)
