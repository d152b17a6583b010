"""The results of `strandline bench query`, as values and as a table."""

from collections.abc import Iterator
from dataclasses import dataclass

from strandline.node.bench.machine import Machine
from strandline.node.output import Block, Table


@dataclass(frozen=True, slots=True)
class LookupCost:
    """The latency of requests and the server's CPU time per request, in milliseconds. The CPU time includes all threads
    and child processes, and is None if the process is not known. It depends less on other activity of the machine than
    the latency does. The kernel counts it in hundredths of a second for all requests together.
    """

    p50_ms: float
    p99_ms: float
    cpu_ms: float | None

    @classmethod
    def of(cls, times: list[float], cpu_seconds: float | None) -> "LookupCost":
        """The cost from the times of all requests and the total CPU time."""
        ordered = sorted(times)
        middle, high = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
        return cls(middle, high, None if cpu_seconds is None else 1000 * cpu_seconds / len(ordered))

    def cells(self) -> tuple[str, ...]:
        """The cells of a table."""
        return _ms(self.p50_ms), _ms(self.p99_ms), "-" if self.cpu_ms is None else _ms(self.cpu_ms)


@dataclass(frozen=True, slots=True)
class LookupFigures:
    """One lookup: the number of requests, the number of results, and the cost on the node and on the peer."""

    what: str
    requests: int
    found: int
    strandline: LookupCost
    peer: LookupCost | None

    def row(self) -> tuple[str, ...]:
        """A row of the table. The last two columns are above 1 where the node is faster than the peer."""
        ours, theirs = self.strandline, self.peer
        own = (self.what, f"{self.requests:,}", f"{self.found:,}", *ours.cells())
        if theirs is None:
            return own
        ratios = (theirs.p50_ms / ours.p50_ms, theirs.p99_ms / ours.p99_ms)
        return (*own, *theirs.cells(), *(f"{ratio:.2f}" for ratio in ratios))


@dataclass(frozen=True, slots=True)
class QueryReport:
    """The results of one run."""

    series: int
    labels_a_series: int
    shards: int
    machine: Machine
    peer: str | None
    note: str
    lookups: tuple[LookupFigures, ...]

    def blocks(self) -> Iterator[Block]:
        """The results as one table."""
        yield (
            f"{self.series:,} series with {self.labels_a_series} labels, {self.shards} shard"
            f"{'' if self.shards == 1 else 's'}; asked in turn, over one connection each"
        )
        yield str(self.machine)
        if self.note:
            yield self.note
        yield ""
        columns: tuple[str, ...] = ("lookup over HTTP", "asked", "found", "p50 ms", "p99 ms", "CPU ms")
        if self.peer is not None:
            columns += tuple(f"{self.peer} {what} ms" for what in ("p50", "p99", "CPU"))
            columns += ("p50: theirs / ours", "p99: theirs / ours")
        yield Table(columns, tuple(figures.row() for figures in self.lookups))


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.2f}"
