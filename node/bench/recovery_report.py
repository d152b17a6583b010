"""The results of `strandline bench recovery`, as values, tables and a picture."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from strandline.node.bench.line_chart import Line, Panel, Point, line_charts
from strandline.node.bench.machine import MIB, Machine
from strandline.node.output import Block, Table
from strandline.node.shard.status import Phase

LocalCopy = Literal["warm", "cold"]
Reader = Literal["direct", "spark"]

_PHASES = (Phase.ACQUIRING, Phase.RECOVERING_INDEX, Phase.REPLAYING, Phase.CATCHING_UP, Phase.ACTIVE)
_START_COLUMNS = ("process start", "acquiring", "recovering index", "replaying", "catching up", "CPU")


@dataclass(frozen=True, slots=True)
class Start:
    """A start of a shard's process: the seconds until it was ACTIVE, and the seconds of each phase; 0 for a phase that
    was not entered. `cpu_seconds` and `peak_resident_bytes` are those of the shard's process until then. The CPU time
    is meaningful even if other processes use the machine.
    """

    seconds: float
    process_start: float
    acquiring: float
    recovering_index: float
    replaying: float
    catching_up: float
    cpu_seconds: float
    peak_resident_bytes: int

    @classmethod
    def of(cls, spawned: int, entered: Mapping[str, int], *, cpu_seconds: float, peak_resident_bytes: int) -> "Start":
        """A start from the wall-clock times (ms) at which the process was spawned and each phase was entered."""
        begun = [(phase, entered[phase.value]) for phase in _PHASES if phase.value in entered]
        ends = [time for _, time in begun[1:]]
        spent = {phase: (end - time) / 1000 for (phase, time), end in zip(begun, ends, strict=False)}
        return cls(
            seconds=(entered[Phase.ACTIVE.value] - spawned) / 1000,
            process_start=(begun[0][1] - spawned) / 1000,
            acquiring=spent.get(Phase.ACQUIRING, 0.0),
            recovering_index=spent.get(Phase.RECOVERING_INDEX, 0.0),
            replaying=spent.get(Phase.REPLAYING, 0.0),
            catching_up=spent.get(Phase.CATCHING_UP, 0.0),
            cpu_seconds=cpu_seconds,
            peak_resident_bytes=peak_resident_bytes,
        )

    def cells(self) -> tuple[str, ...]:
        """The cells of a table: the total, the phases, and the CPU time."""
        phases = (self.process_start, self.acquiring, self.recovering_index, self.replaying, self.catching_up)
        return tuple(f"{seconds:.2f}" for seconds in (self.seconds, *phases, self.cpu_seconds))


@dataclass(frozen=True, slots=True)
class IndexStart:
    """A start without missed records, with or without the local copy."""

    series: int
    local_copy: LocalCopy
    start: Start

    def row(self) -> tuple[str, ...]:
        memory = f"{self.start.peak_resident_bytes / MIB:,.0f}"
        return f"{self.series:,}", self.local_copy, *self.start.cells(), memory


@dataclass(frozen=True, slots=True)
class LagStart:
    """A start after missed records. `stored_seconds` is the time until all of them were stored: a shard that replays
    directly is ACTIVE before that. `workers_peak_bytes` is the peak memory of the worker and its descendants.
    """

    reader: Reader
    records: int
    samples: int
    start: Start
    stored_seconds: float
    workers_peak_bytes: int

    @property
    def samples_per_second(self) -> float:
        """Samples per second until all are stored, including the start of the process."""
        return self.samples / self.stored_seconds

    def row(self) -> tuple[str, ...]:
        return (
            self.reader,
            f"{self.records:,}",
            f"{self.samples:,}",
            *self.start.cells(),
            f"{self.stored_seconds:.2f}",
            f"{self.samples_per_second:,.0f}",
            f"{self.start.peak_resident_bytes / MIB:,.0f}",
            f"{self.workers_peak_bytes / MIB:,.0f}",
        )


@dataclass(frozen=True, slots=True)
class WarmReplay:
    """A replay job in a warm Spark session, from Kafka to the store."""

    records: int
    samples: int
    seconds: float

    @property
    def samples_per_second(self) -> float:
        return self.samples / self.seconds

    def row(self) -> tuple[str, ...]:
        return f"{self.records:,}", f"{self.samples:,}", f"{self.seconds:.2f}", f"{self.samples_per_second:,.0f}"


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """The results of one run. Those of a part that was not run are empty."""

    machine: Machine
    labels_a_series: int
    samples_a_record: int
    lag_series: int
    index_starts: Sequence[IndexStart]
    lag_starts: Sequence[LagStart]
    warm_replays: Sequence[WarmReplay]

    def blocks(self) -> Iterator[Block]:
        """The results as tables. All times are in seconds."""
        yield f"{self.labels_a_series} labels a series, {self.samples_a_record:,} samples a record; times in seconds"
        yield str(self.machine)
        if self.index_starts:
            yield ""
            yield "Buckets only: all is stored, with the local copy of the index (warm) or without (cold)"
            yield Table(
                ("series", "local copy", "to ACTIVE", *_START_COLUMNS, "peak MB"),
                tuple(one.row() for one in self.index_starts),
            )
        if self.lag_starts:
            yield ""
            yield (
                f"Lag, {self.lag_series:,} series: samples/s until all is stored. With spark that includes the start of"
                " a session. The workers' memory is that of Spark's JVM and its Python processes"
            )
            yield Table(
                (
                    *("read by", "records", "samples", "to ACTIVE", *_START_COLUMNS),
                    *("all stored", "samples/s", "peak MB", "workers' peak MB"),
                ),
                tuple(one.row() for one in self.lag_starts),
            )
        if self.warm_replays:
            yield ""
            yield "Spark alone, in a session that has done as much before: from Kafka into Cassandra"
            yield Table(("records", "samples", "seconds", "samples/s"), tuple(one.row() for one in self.warm_replays))

    def picture(self) -> str:
        """A chart of the time to ACTIVE against the lag and against the number of series."""
        panels = [panel for panel in (self._lag_panel(), self._series_panel()) if panel.lines]
        return line_charts("From the start of a shard's process to ACTIVE", str(self.machine), panels)

    def _lag_panel(self) -> Panel:
        lines = [
            Line(label, [Point(one.records, one.start.seconds) for one in self.lag_starts if one.reader == reader])
            for reader, label in (("direct", "direct"), ("spark", "spark, from its start"))
        ]
        lines.append(Line("spark jobs, session warm", [Point(one.records, one.seconds) for one in self.warm_replays]))
        return Panel(
            f"Against lag, {self.lag_series:,} series",
            f"records missed, {self.samples_a_record:,} samples each",
            "seconds",
            " s",
            _drawn(lines),
        )

    def _series_panel(self) -> Panel:
        lines = [
            Line(label, [Point(one.series, one.start.seconds) for one in self.index_starts if one.local_copy == copy])
            for copy, label in (("warm", "with the local copy"), ("cold", "from Cassandra alone"))
        ]
        return Panel("Against series, buckets only", "series", "seconds", " s", _drawn(lines))


def _drawn(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line.points]
