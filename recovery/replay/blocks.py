"""What goes from the tasks that read records to those that write units."""

from dataclasses import dataclass, field
from enum import IntEnum


class BlockKind(IntEnum):
    """What a block holds."""

    SAMPLES = 0
    KEYS = 1
    FAULTS = 2
    COUNTS = 3


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a unit, from records that nothing else of the same kind and group comes from.

    `unit` is the wave's number. Blocks of one kind and group are in order by the offset of the first record that they
    were made from: of two samples of one series and time, the one in the later block counts. `group` has a meaning for
    samples only.
    """

    unit: int
    kind: BlockKind
    group: int
    first_offset: int
    data: bytes = field(repr=False)
