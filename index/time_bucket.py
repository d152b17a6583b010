"""A time bucket: open while its records are read, frozen after its cut."""

from dataclasses import dataclass, field

from pyroaring import BitMap

from strandline.arrays import I64s, U32s


@dataclass(slots=True)
class OpenBucket:
    """The open bucket.

    `changed` has the part ids whose record this bucket will store: started, ended, resumed, start lowered or rolled
    over. `active` has those with a sample in it.
    """

    bucket: int
    changed: BitMap = field(default_factory=BitMap)
    active: BitMap = field(default_factory=BitMap)


@dataclass(frozen=True, slots=True)
class FrozenBucket:
    """A bucket as of its cut; immutable.

    The records are `part_ids`, in ascending order, with the `start` and `end` (`LIVE` for a live key) of each.
    `active_ids`, in ascending order, had a sample in the bucket, and `last` is the maximum sample time of each so far.
    """

    bucket: int
    part_ids: U32s
    start: I64s
    end: I64s
    active_ids: U32s
    last: I64s
