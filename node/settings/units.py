"""Durations and sizes as people write them: "30s", "5m", "1h"; "512m", "1g"."""

import re
from dataclasses import dataclass
from typing import ClassVar, Self

_WRITTEN = re.compile(r"(?P<count>[0-9]{1,18})(?P<unit>[a-zA-Z]*)", re.ASCII)


class _Quantity:
    """A whole number of some unit, written as a number and a unit without a space between."""

    UNITS: ClassVar[dict[str, int]]
    EXAMPLES: ClassVar[str]
    WHAT: ClassVar[str]

    @classmethod
    def _count(cls, text: object) -> int:
        written = _WRITTEN.fullmatch(text.strip()) if isinstance(text, str) else None
        unit = written["unit"].lower() if written else ""
        if written is None or unit not in cls.UNITS:
            raise ValueError(f"not a {cls.WHAT}")
        return int(written["count"]) * cls.UNITS[unit]

    @classmethod
    def hint(cls) -> str:
        """How to write one."""
        return f"Write a whole number and one of {', '.join(cls.UNITS)}, such as {cls.EXAMPLES}"

    @classmethod
    def _written(cls, count: int) -> str:
        """In the largest unit that leaves no fraction, none in the least; a count of the bare unit if none does."""
        fitting = [(unit, size) for unit, size in cls.UNITS.items() if count % size == 0]
        unit, size = fitting[-1 if count else 0] if fitting else ("", 1)
        return f"{count // size}{unit}"


@dataclass(frozen=True, slots=True, order=True)
class Duration(_Quantity):
    """A length of time, to the millisecond."""

    milliseconds: int

    UNITS: ClassVar = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    EXAMPLES = '"30s" or "5m"'
    WHAT = "duration"

    @classmethod
    def parse(cls, text: object) -> Self:
        """Read "30s", or raise `ValueError`. A bare number is an error, since nobody can tell what was meant."""
        return cls(cls._count(text))

    @property
    def seconds(self) -> float:
        """The same in seconds, as most of Python's interfaces want it."""
        return self.milliseconds / 1000

    def __str__(self) -> str:
        return self._written(self.milliseconds)


@dataclass(frozen=True, slots=True, order=True)
class ByteSize(_Quantity):
    """A number of bytes, in powers of 1024; its text is what the JVM's -Xmx and Spark's memory settings accept."""

    bytes: int

    UNITS: ClassVar = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    EXAMPLES = '"512m" or "1g"'
    WHAT = "size"

    @classmethod
    def parse(cls, text: object) -> Self:
        """Read "512m", or raise `ValueError`. A bare number is an error, since nobody can tell what was meant."""
        return cls(cls._count(text))

    def __str__(self) -> str:
        return self._written(self.bytes)
