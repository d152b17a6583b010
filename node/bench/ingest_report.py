"""The results of `strandline bench ingest`, as values and as tables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from strandline.node.bench.machine import MIB, Machine
from strandline.node.output import Block, Table


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a run: the samples that the shard's process ingested, and its CPU seconds by stage and in total.

    CPU time outside of the stages is that of the threads of Java and of Kafka's client, of the interpreter between the
    stages, and of saving the local copy.
    """

    samples: int
    seconds: float
    cpu_seconds: float
    stages: Mapping[str, float]

    @classmethod
    def between(cls, before: Mapping[str, Any], after: Mapping[str, Any], seconds: float) -> "Part":
        """The part of a run between two statuses of a shard."""
        return cls(
            samples=after["counters"]["samples"] - before["counters"]["samples"],
            seconds=seconds,
            cpu_seconds=after["cpu_seconds"] - before["cpu_seconds"],
            stages={stage: spent - before["stages"][stage] for stage, spent in after["stages"].items()},
        )

    @property
    def samples_per_second(self) -> float:
        return self.samples / self.seconds

    @property
    def samples_per_cpu_second(self) -> float:
        return self.samples / self.cpu_seconds

    def rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Rows of stage, CPU seconds, nanoseconds per sample, and share."""
        rest = self.cpu_seconds - sum(self.stages.values())
        for stage, spent in (*self.stages.items(), ("other", rest), ("all", self.cpu_seconds)):
            share = spent / self.cpu_seconds
            yield stage, f"{spent:.2f}", f"{1e9 * spent / self.samples:,.0f}", f"{share:.0%}"


@dataclass(frozen=True, slots=True)
class PeerFigures:
    """Samples per CPU second of the peer's process, for new and for known series."""

    new_series: float
    steady_state: float


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The results of one run."""

    series: int
    scrapes: int
    labels_a_series: int
    samples_a_record: int
    machine: Machine
    new_series: Part
    steady_state: Part
    stored_bytes_a_sample: float
    index_bytes_a_series: float
    resident_bytes: int
    resident_bytes_at_end: int
    peak_resident_bytes: int
    buffer_bytes_a_sample: float
    peer: PeerFigures | None

    def blocks(self) -> Iterator[Block]:
        """The results as tables."""
        yield (
            f"{self.series:,} series x {self.scrapes} scrapes, {self.labels_a_series} labels a series,"
            f" {self.samples_a_record:,} samples a record"
        )
        yield str(self.machine)
        for title, part in (
            ("series that are new, not stored yet", self.new_series),
            ("steady state, stored and all", self.steady_state),
        ):
            yield ""
            yield (
                f"{title}: {part.samples_per_second:,.0f} samples/s,"
                f" {part.samples_per_cpu_second:,.0f} samples a CPU-second"
            )
            yield Table(("stage", "CPU s", "ns a sample", "share"), tuple(part.rows()))
        yield ""
        yield Table(
            ("what", "bytes"),
            (
                ("stored, a sample: segments with their directories", f"{self.stored_bytes_a_sample:.2f}"),
                ("stored, a series: index bucket", f"{self.index_bytes_a_series:.1f}"),
                ("write buffer before the cut, a sample", f"{self.buffer_bytes_a_sample:.2f}"),
                ("resident after the last scrape", f"{self.resident_bytes / MIB:,.0f} MB"),
                ("resident at the end, all stored", f"{self.resident_bytes_at_end / MIB:,.0f} MB"),
                ("peak resident", f"{self.peak_resident_bytes / MIB:,.0f} MB"),
            ),
        )
        if self.peer is not None:
            yield ""
            mine = (self.new_series.samples_per_cpu_second, self.steady_state.samples_per_cpu_second)
            theirs = (self.peer.new_series, self.peer.steady_state)
            yield Table(
                ("samples a CPU-second", "strandline", "peer", "ratio"),
                tuple(
                    (what, f"{one:,.0f}", f"{other:,.0f}", f"{one / other:.1f}")
                    for what, one, other in zip(("new series", "steady state"), mine, theirs, strict=True)
                ),
            )
