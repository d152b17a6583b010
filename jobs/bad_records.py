"""Records of a source that can't be used: how many, why, and the first of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MAX_EXAMPLES = 20
MAX_EXCERPT = 200


def printable(text: str) -> str:
    """Text of a file without characters that would do something to a terminal: they stand as escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


@dataclass(frozen=True, slots=True, order=True)
class BadRecord:
    """One of them: at which byte of its file it begins, in which line of its part (from 1 on; 0 where a format has no
    lines), what is wrong with it, and the beginning of its text.
    """

    offset: int
    line: int
    reason: str
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class BadRecords:
    """Those of a block or a part: how many for each reason, and the first ones by offset."""

    counts: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[BadRecord, ...] = ()

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.counts.values())

    @classmethod
    def joined(cls, some: Sequence["BadRecords"]) -> "BadRecords":
        """Those of several blocks together."""
        counts: dict[str, int] = {}
        for one in some:
            for reason, count in one.counts.items():
                counts[reason] = counts.get(reason, 0) + count
        examples = sorted(example for one in some for example in one.examples)
        return cls(counts, tuple(examples[:MAX_EXAMPLES]))
