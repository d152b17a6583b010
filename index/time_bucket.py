"""A time bucket: open while its records are read, frozen from its cut on."""

from dataclasses import dataclass, field

from pyroaring import BitMap

from strandline.arrays import I64s, U32s


@dataclass(slots=True)
class OpenBucket:
    """The bucket that is being filled.

    `changed` holds the part ids whose record this bucket will store: started, ended, resumed, start lowered or rolled
    over. `active` holds those that had a sample in it.
    """

    bucket: int
    changed: BitMap = field(default_factory=BitMap)
    active: BitMap = field(default_factory=BitMap)


@dataclass(frozen=True, slots=True)
class FrozenBucket:
    """A bucket as of its cut; nothing in it changes any more.

    The records are `part_ids`, rising, with `start` and `end` (`LIVE` for a live key) of each. `active_ids`, rising,
    had a sample in the bucket, and `last` is the greatest sample time of each so far.
    """

    bucket: int
    part_ids: U32s
    start: I64s
    end: I64s
    active_ids: U32s
    last: I64s
