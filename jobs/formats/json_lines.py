"""JSON lines in VictoriaMetrics' export format.

A line is `{"metric":{"__name__":"up","job":"x"},"values":[1,null,"Infinity"],"timestamps":[1700000000000,...]}`, with
its keys in any order and unknown ones skipped. Timestamps are milliseconds. VictoriaMetrics writes infinities as the
strings "Infinity" and "-Infinity", and null for NaN; the other spellings that it reads are read here too. A null is
left out and counted in `SampleBlock.nulls`; the string "NaN" is a value.
"""

from strandline.jobs.formats.block_builder import BlockBuilder, Bytes
from strandline.jobs.formats.kernels.json_lines import read_json_lines
from strandline.jobs.sample_block import SampleBlock
from strandline.wire.decode import Limits


def parse_json_lines(data: Bytes, offset: int, limits: Limits | None = None, *, most: int | None = None) -> SampleBlock:
    """Read whole lines that begin at a byte of their file. Empty lines are no records.

    A line is bad as a whole, whatever number of samples it has. With `most` the block ends where `BlockBuilder` says.
    """
    builder = BlockBuilder(data, offset, limits or Limits(), most=most)

    def step() -> int:
        need: int = read_json_lines(builder.address, len(builder.data), builder.state)
        return need

    return builder.fill(step)
