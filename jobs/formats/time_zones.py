"""A time zone's offsets from UTC by local time, as arrays that a kernel can search."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from strandline.arrays import I64s
from strandline.errors import Fatal

_ZERO = datetime(1970, 1, 1)  # noqa: DTZ001 - a local time has no zone.
_EARLIEST, _LATEST = datetime(1850, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001
_STEP = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LocalOffsets:
    """`offsets[i]` seconds east of UTC hold for local times from `breaks[i - 1]` on and before `breaks[i]`, all in
    seconds since 1970 by the wall's clock. Local times outside of `earliest` and `latest` are not covered.

    An ambiguous local time counts as the earlier instant, and one that a change skips as if the change had not happened
    yet: both as `zoneinfo` has it for `fold=0`.
    """

    breaks: I64s = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    offsets: I64s = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    earliest: int = -(1 << 60)
    latest: int = 1 << 60


@lru_cache(maxsize=16)
def local_offsets(name: str) -> LocalOffsets:
    """The offsets of an IANA time zone. Those of one other than UTC are covered from 1850 up to and with 2199.

    `zoneinfo` gives the offset of one local time only, so the changes are searched for: by days, since no zone changes
    back and forth within one, then by halving down to the second.
    """
    if name == "UTC":
        return LocalOffsets()
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Fatal(
            f"the time zone {name!r} does not exist", remedy="Use an IANA name such as Europe/Berlin, or UTC."
        ) from error

    def offset(local: datetime) -> int:
        shift = local.replace(tzinfo=zone).utcoffset()
        return round(shift.total_seconds()) if shift is not None else 0

    def seconds(local: datetime) -> int:
        return (local - _ZERO) // timedelta(seconds=1)

    breaks, offsets = [], [offset(_EARLIEST)]
    day = _EARLIEST
    while day < _LATEST:
        following = day + _STEP
        if (changed := offset(following)) != offsets[-1]:
            low, high = seconds(day), seconds(following)
            while high - low > 1:
                middle = (low + high) // 2
                if offset(_ZERO + timedelta(seconds=middle)) == offsets[-1]:
                    low = middle
                else:
                    high = middle
            breaks.append(high)
            offsets.append(changed)
        day = following
    return LocalOffsets(
        np.array(breaks, dtype=np.int64), np.array(offsets, dtype=np.int64), seconds(_EARLIEST), seconds(_LATEST)
    )
