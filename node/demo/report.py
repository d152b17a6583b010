"""The result of the demo: samples and times."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from strandline.node.demo.bulk import BulkCounts
from strandline.node.demo.ledger import Comparison
from strandline.node.output import Block, Table
from strandline.node.shard.status import Phase


@dataclass(frozen=True, slots=True)
class Chapter:
    """A step of the scenario, and its duration."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class RecoveredShard:
    """The recovery of a shard: the seconds of each phase, and the number of replay jobs on Spark."""

    shard: int
    phases: Mapping[str, float]
    replay_jobs: int


@dataclass(frozen=True, slots=True)
class DemoReport:
    """Sent, found and lost samples, and the time of each chapter and of each phase of the recovery."""

    series: int
    comparison: Comparison
    verified_shards: int
    chapters: tuple[Chapter, ...]
    recovered: tuple[RecoveredShard, ...]
    bulk: BulkCounts

    def blocks(self) -> Iterator[Block]:
        """The report as tables."""
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
                ("imported from a file", f"{self.bulk.imported:,} of {self.bulk.in_file:,}"),
                ("exported to Parquet", f"{self.bulk.exported:,}"),
            ),
        )
        yield Table(
            ("chapter", "seconds"), tuple((chapter.name, f"{chapter.seconds:.1f}") for chapter in self.chapters)
        )
        yield Table(
            ("recovery", "seconds"),
            tuple(
                (f"shard {one.shard}: {phase}" + _jobs(one, phase), f"{seconds:.1f}")
                for one in self.recovered
                for phase, seconds in one.phases.items()
            ),
        )
        yield f"`strandline recover verify` found nothing wrong with {self.verified_shards} shards."


def _jobs(one: RecoveredShard, phase: str) -> str:
    if phase != Phase.REPLAYING.value:
        return ""
    return f" ({one.replay_jobs} job{'' if one.replay_jobs == 1 else 's'} by Spark)"
