"""The formats of times in text: a number with a unit, RFC 3339, or a pattern."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from strandline.arrays import I64s
from strandline.errors import Fatal
from strandline.jobs.formats.kernels import clock_times

Unit = Literal["s", "ms", "us", "ns"]
# The unit in milliseconds, as a power of ten.
SHIFTS: dict[str, int] = {"s": 3, "ms": 0, "us": -3, "ns": -6}
_DIRECTIVES = {
    "Y": clock_times.YEAR,
    "m": clock_times.MONTH,
    "d": clock_times.DAY,
    "H": clock_times.HOUR,
    "M": clock_times.MINUTE,
    "S": clock_times.SECOND,
    "f": clock_times.FRACTION,
    "z": clock_times.OFFSET,
    "b": clock_times.MONTH_NAME,
}


@dataclass(frozen=True, slots=True)
class UnixTime:
    """Units since 1970, as an integer or a decimal number, truncated to milliseconds."""

    unit: Unit = "s"

    def __post_init__(self) -> None:
        if self.unit not in SHIFTS:
            raise Fatal(f"the time unit {self.unit!r} does not exist", remedy=f"Use one of {', '.join(SHIFTS)}.")


@dataclass(frozen=True, slots=True)
class Rfc3339Time:
    """Such as `2024-05-01T12:00:00.123+02:00`. A space may replace the T; the offset is mandatory."""


@dataclass(frozen=True, slots=True)
class PatternTime:
    """A pattern of `%Y %m %d %H %M %S %f %z %b %%` and literal characters, as in `strptime`.

    `%f` accepts up to nine digits, `%z` accepts `Z`, `+02:00`, `+0200` and `+02`, and `%b` English names. Without `%z`,
    times are local times of the time zone.
    """

    pattern: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        pattern_steps(self.pattern)


TimeFormat = UnixTime | Rfc3339Time | PatternTime


def pattern_steps(pattern: str) -> I64s:
    """A pattern as the steps for `kernels.clock_times`."""
    steps: list[int] = []
    characters = iter(pattern)
    for character in characters:
        if character != "%":
            steps += character.encode()
            continue
        directive = next(characters, "")
        if directive == "%":
            steps.append(ord("%"))
        elif directive in _DIRECTIVES:
            steps.append(_DIRECTIVES[directive])
        else:
            raise Fatal(
                f"the time format {pattern!r} has %{directive}, which is not supported",
                remedy=f"Use {' '.join('%' + name for name in _DIRECTIVES)} and literal characters.",
            )
    directives = [step for step in steps if step < 0]
    if len(set(directives)) < len(directives):
        raise Fatal(f"the time format {pattern!r} has a directive twice", remedy="Use each of them once.")
    months = {clock_times.MONTH, clock_times.MONTH_NAME}.intersection(directives)
    if not {clock_times.YEAR, clock_times.DAY}.issubset(directives) or len(months) != 1:
        raise Fatal(f"the time format {pattern!r} gives no date", remedy="It needs %Y, %d, and one of %m and %b.")
    return np.array(steps, dtype=np.int64)
