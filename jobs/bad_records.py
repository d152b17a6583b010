"""Records of a source that can't be imported: counts per reason, and the first examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MAX_EXAMPLES = 20
MAX_EXCERPT = 200


def printable(text: str) -> str:
    """The text with non-printable characters escaped, so that it can't control a terminal."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


@dataclass(frozen=True, slots=True, order=True)
class BadRecord:
    """A bad record: its byte offset in the file, its line in the part (starting at 1; 0 if the format has no lines),
    the reason, and the beginning of its text.
    """

    offset: int
    line: int
    reason: str
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class BadRecords:
    """The bad records of a block or a part: counts per reason, and the first examples by offset."""

    counts: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[BadRecord, ...] = ()

    @property
    def total(self) -> int:
        """The number of bad records."""
        return sum(self.counts.values())

    @classmethod
    def joined(cls, some: Sequence["BadRecords"]) -> "BadRecords":
        """The bad records of several blocks."""
        counts: dict[str, int] = {}
        for one in some:
            for reason, count in one.counts.items():
                counts[reason] = counts.get(reason, 0) + count
        examples = sorted(example for one in some for example in one.examples)
        return cls(counts, tuple(examples[:MAX_EXAMPLES]))
