"""The blocks that tasks that read records pass to the tasks that write units."""

from dataclasses import dataclass, field
from enum import IntEnum


class BlockKind(IntEnum):
    """The contents of a block."""

    SAMPLES = 0
    KEYS = 1
    FAULTS = 2
    COUNTS = 3


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a unit. No other block of the same kind and group contains data of the same records.

    `unit` is its number in the wave. Blocks of one kind and group are ordered by the offset of their first record: if
    two samples have the same series and time, the one in the later block counts. `group` is only used for samples.
    """

    unit: int
    kind: BlockKind
    group: int
    first_offset: int
    data: bytes = field(repr=False)
