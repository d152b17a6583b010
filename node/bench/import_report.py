"""The results of `strandline bench import`, as values and as tables."""

from collections.abc import Iterator
from dataclasses import dataclass

from strandline.node.bench.import_files import ImportLoad
from strandline.node.bench.machine import MIB, Machine
from strandline.node.output import Block, Table


@dataclass(frozen=True, slots=True)
class PeerImport:
    """A peer's import of a file: the seconds until its response, its CPU time until then, and its CPU time until it had
    flushed and merged the samples. CPU times are None if its process is not known.
    """

    seconds: float
    answered_cpu_seconds: float | None
    cpu_seconds: float | None


@dataclass(frozen=True, slots=True)
class FormatFigures:
    """The result of one format. `seconds` is the time until all records are committed, and `cpu_seconds` the worker's
    CPU time. `shards_cpu_seconds` is the CPU time of the shards until everything is stored; None if no shards ran.
    """

    format: str
    file_bytes: int
    samples: int
    seconds: float
    cpu_seconds: float
    kafka_bytes: int
    shards_cpu_seconds: float | None = None
    peer: PeerImport | None = None

    @property
    def samples_per_cpu_second(self) -> float:
        return self.samples / self.cpu_seconds

    @property
    def end_to_end_per_cpu_second(self) -> float | None:
        """Samples per CPU second of the worker and the shards."""
        if self.shards_cpu_seconds is None:
            return None
        return self.samples / (self.cpu_seconds + self.shards_cpu_seconds)

    @property
    def peer_per_cpu_second(self) -> float | None:
        """Samples per CPU second of the peer, including its flush."""
        if self.peer is None or self.peer.cpu_seconds is None:
            return None
        return self.samples / self.peer.cpu_seconds


@dataclass(frozen=True, slots=True)
class ImportBenchReport:
    """The results of one run. `command_seconds` is the time of the complete command for a CSV file of 1 MB."""

    load: ImportLoad
    machine: Machine
    figures: tuple[FormatFigures, ...]
    command_seconds: float | None = None
    remark: str = ""

    def blocks(self) -> Iterator[Block]:
        """The results as a table."""
        load = self.load
        yield f"{load.samples:,} samples of {load.series:,} series, {load.partitions} partitions"
        yield str(self.machine)
        yield ""
        rows = tuple(
            (
                one.format,
                f"{one.file_bytes / MIB:,.0f} MiB",
                f"{one.samples_per_cpu_second:,.0f}",
                _number(one.end_to_end_per_cpu_second),
                _number(one.peer_per_cpu_second),
                f"{one.samples / one.seconds:,.0f}",
                _number(one.samples / one.peer.seconds if one.peer is not None else None),
                f"{1e9 * one.cpu_seconds / one.samples:,.0f}",
                f"{one.kafka_bytes / one.samples:.1f}",
            )
            for one in self.figures
        )
        columns = (
            "format",
            "file",
            "samples a CPU-second",
            "with the shards",
            "VictoriaMetrics",
            "samples/s",
            "VictoriaMetrics",
            "ns a sample",
            "bytes a sample in Kafka",
        )
        yield Table(columns, rows)
        if self.command_seconds is not None:
            yield f"`strandline job import` of 1 MB of CSV took {self.command_seconds:.2f} s, including its start."
        if self.remark:
            yield self.remark


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
