"""JSON lines in VictoriaMetrics' export format.

A line is `{"metric":{"__name__":"up","job":"x"},"values":[1,null,"Infinity"],"timestamps":[1700000000000,...]}`. Its
keys may have any order, and unknown ones are skipped. Timestamps are milliseconds. VictoriaMetrics writes infinities as
the strings "Infinity" and "-Infinity", and null for NaN; the other spellings that it reads are accepted too. A null is
skipped and counted in `SampleBlock.nulls`; the string "NaN" is a value.
"""

from strandline.jobs.formats.block_builder import BlockBuilder, Bytes
from strandline.jobs.formats.kernels.json_lines import read_json_lines
from strandline.jobs.sample_block import SampleBlock
from strandline.wire.decode import Limits


def parse_json_lines(
    data: Bytes, offset: int, limits: Limits | None = None, *, max_bytes: int | None = None
) -> SampleBlock:
    """Parse complete lines; `offset` is their position in the file. Empty lines are not records.

    A bad line has no samples, even if some of them are valid. With `max_bytes`, the block may end early, see
    `BlockBuilder`.
    """
    builder = BlockBuilder(data, offset, limits or Limits(), max_bytes=max_bytes)

    def step() -> int:
        need: int = read_json_lines(builder.address, len(builder.data), builder.state)
        return need

    return builder.fill(step)
