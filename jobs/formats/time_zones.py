"""The offsets from UTC of a time zone by local time, as arrays for kernels."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from strandline.arrays import I64s
from strandline.errors import Fatal

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a local time has no zone.
_EARLIEST, _LATEST = datetime(1850, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001
_STEP = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LocalOffsets:
    """The offset for local times from `breaks[i - 1]` to `breaks[i]` (exclusive) is `offsets[i]` seconds east of UTC.
    Local times are in seconds since 1970 by local clocks. Those outside of `earliest` and `latest` are not covered.

    An ambiguous local time is the earlier one. A local time that a change skips has the offset before the change. Both
    as in `zoneinfo` with `fold=0`.
    """

    breaks: I64s = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    offsets: I64s = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    earliest: int = -(1 << 60)
    latest: int = 1 << 60


@lru_cache(maxsize=16)
def local_offsets(name: str) -> LocalOffsets:
    """The offsets of an IANA time zone, from 1850 to 2199 unless it is UTC.

    `zoneinfo` only returns the offset of a single time, so the changes are searched: by days, because no zone changes
    twice within a day, and then to the second by bisection.
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
        return (local - _EPOCH) // timedelta(seconds=1)

    breaks, offsets = [], [offset(_EARLIEST)]
    day = _EARLIEST
    while day < _LATEST:
        following = day + _STEP
        if (changed := offset(following)) != offsets[-1]:
            low, high = seconds(day), seconds(following)
            while high - low > 1:
                middle = (low + high) // 2
                if offset(_EPOCH + timedelta(seconds=middle)) == offsets[-1]:
                    low = middle
                else:
                    high = middle
            breaks.append(high)
            offsets.append(changed)
        day = following
    return LocalOffsets(
        np.array(breaks, dtype=np.int64), np.array(offsets, dtype=np.int64), seconds(_EARLIEST), seconds(_LATEST)
    )
