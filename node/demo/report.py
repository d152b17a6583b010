"""What the demonstration came to: samples and times."""

from collections.abc import Iterator
from dataclasses import dataclass

from strandline.node.demo.ledger import Comparison
from strandline.node.output import Block, Table


@dataclass(frozen=True, slots=True)
class Chapter:
    """A part of the story, and how long it took."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class DemoReport:
    """Samples sent, found and missed, and the time of each chapter."""

    series: int
    comparison: Comparison
    verified_shards: int
    chapters: tuple[Chapter, ...]

    def blocks(self) -> Iterator[Block]:
        """Two short tables."""
        compared = self.comparison
        yield Table(
            ("samples", "how many"),
            (
                ("acknowledged", f"{compared.acknowledged:,}"),
                ("found", f"{compared.found:,}"),
                ("lost", f"{compared.lost:,}"),
                ("doubled", f"{compared.doubled:,}"),
                ("with another value", f"{compared.wrong:,}"),
                ("never sent", f"{compared.foreign:,}"),
            ),
        )
        yield Table(
            ("chapter", "seconds"), tuple((chapter.name, f"{chapter.seconds:.1f}") for chapter in self.chapters)
        )
        yield f"`strandline recover verify` found nothing wrong with {self.verified_shards} shards."
