"""The figures of `strandline bench query`, as values and as a table."""

from collections.abc import Iterator
from dataclasses import dataclass

from strandline.node.bench.machine import Machine
from strandline.node.output import Block, Table


@dataclass(frozen=True, slots=True)
class LookupCost:
    """How long requests took, and what CPU time one took of the server, its threads and processes included; in
    milliseconds. CPU time is None for a server whose process is not known. It depends less than the others on what else
    a machine does, and is counted in hundredths of a second for all requests together.
    """

    p50_ms: float
    p99_ms: float
    cpu_ms: float | None

    @classmethod
    def of(cls, times: list[float], cpu_seconds: float | None) -> "LookupCost":
        """The middle one, and the one that one in a hundred is above."""
        ordered = sorted(times)
        middle, high = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
        return cls(middle, high, None if cpu_seconds is None else 1000 * cpu_seconds / len(ordered))

    def cells(self) -> tuple[str, ...]:
        """As a table shows them."""
        return _ms(self.p50_ms), _ms(self.p99_ms), "-" if self.cpu_ms is None else _ms(self.cpu_ms)


@dataclass(frozen=True, slots=True)
class LookupFigures:
    """One look-up: how often it was asked, how many results it has, and what it takes here and there."""

    what: str
    requests: int
    found: int
    strandline: LookupCost
    peer: LookupCost | None

    def row(self) -> tuple[str, ...]:
        """What is above 1 in the last two columns is quicker here."""
        ours, theirs = self.strandline, self.peer
        told = (self.what, f"{self.requests:,}", f"{self.found:,}", *ours.cells())
        if theirs is None:
            return told
        ratios = (theirs.p50_ms / ours.p50_ms, theirs.p99_ms / ours.p99_ms)
        return (*told, *theirs.cells(), *(f"{ratio:.2f}" for ratio in ratios))


@dataclass(frozen=True, slots=True)
class QueryReport:
    """All figures of one run."""

    series: int
    labels_a_series: int
    shards: int
    machine: Machine
    peer: str | None
    note: str
    lookups: tuple[LookupFigures, ...]

    def blocks(self) -> Iterator[Block]:
        """The figures as one table."""
        yield (
            f"{self.series:,} series with {self.labels_a_series} labels, {self.shards} shard"
            f"{'' if self.shards == 1 else 's'}; asked in turn, over one connection each"
        )
        yield str(self.machine)
        if self.note:
            yield self.note
        yield ""
        columns: tuple[str, ...] = ("look-up over HTTP", "asked", "found", "p50 ms", "p99 ms", "CPU ms")
        if self.peer is not None:
            columns += tuple(f"{self.peer} {what} ms" for what in ("p50", "p99", "CPU"))
            columns += ("p50: theirs / ours", "p99: theirs / ours")
        yield Table(columns, tuple(figures.row() for figures in self.lookups))


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.2f}"
