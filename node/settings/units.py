"""Durations and sizes with units: "30s", "5m", "1h"; "512m", "1g"."""

import re
from dataclasses import dataclass
from typing import ClassVar, Self

_WRITTEN = re.compile(r"(?P<count>[0-9]{1,18})(?P<unit>[a-zA-Z]*)", re.ASCII)


class _Quantity:
    """An integer with a unit, written without a space between them."""

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
        """A text that describes the format."""
        return f"Write an integer and one of {', '.join(cls.UNITS)}, such as {cls.EXAMPLES}"

    @classmethod
    def _written(cls, count: int) -> str:
        """The text in the largest unit that leaves no fraction; for 0, in the smallest unit. Without a unit if none of
        the units leaves no fraction.
        """
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
        """Parse "30s". Raises `ValueError`, also for a number without a unit, which would be ambiguous."""
        return cls(cls._count(text))

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return self.milliseconds / 1000

    def __str__(self) -> str:
        return self._written(self.milliseconds)


@dataclass(frozen=True, slots=True, order=True)
class ByteSize(_Quantity):
    """A number of bytes, with powers of 1024 as units. Its text is valid for the JVM's -Xmx and Spark's memory
    settings.
    """

    bytes: int

    UNITS: ClassVar = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    EXAMPLES = '"512m" or "1g"'
    WHAT = "size"

    @classmethod
    def parse(cls, text: object) -> Self:
        """Parse "512m". Raises `ValueError`, also for a number without a unit, which would be ambiguous."""
        return cls(cls._count(text))

    def __str__(self) -> str:
        return self._written(self.bytes)
