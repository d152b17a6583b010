"""The results of queries while a shard ingests: answers, errors, and the shard's lag.

They are computed from the data of the run: a `QueryOutcome` for each query, and a `ProgressSample` for each second.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from strandline.errors import Fatal
from strandline.node.bench.machine import MIB
from strandline.node.output import Block, Table

# The name of a setting of the node, or of a parameter of the request, in the error of a refused query.
_LIMIT = re.compile(r"\b(query|http)\.[a-z_]+|\btimeout=")
_MAX_TEXT = 200
_ROWS = 12


class LoadFailed(Fatal):
    """Queries failed for other reasons than a limit, or the shard did not read all records."""


@dataclass(frozen=True, slots=True)
class QueryOutcome:
    """The outcome of one query. `error` is the text of an error. `has_warnings` applies to answers."""

    what: str
    milliseconds: float
    status: int
    error: str = ""
    has_warnings: bool = False

    @property
    def is_answer(self) -> bool:
        """Whether there was a result."""
        return self.status == 200 and not self.error

    @property
    def names_a_limit(self) -> bool:
        """Whether it was refused because of a limit, and the error has the limit's name."""
        return self.status in (422, 503) and _LIMIT.search(self.error) is not None


@dataclass(frozen=True, slots=True)
class ProgressSample:
    """The progress of writing and reading at one time: the seconds since the load began, the records written and read
    since then, and the total samples that the shard has ingested.
    """

    seconds: float
    written: int
    read: int
    ingested: int


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag at one time: in records, and in seconds since the oldest unread record was written."""

    seconds: float
    records: int
    behind_s: float


@dataclass(frozen=True, slots=True)
class Latencies:
    """One query: how often it was answered and refused, and the latency of answers."""

    what: str
    answered: int
    refused: int
    p50_ms: float | None
    p99_ms: float | None

    def row(self) -> tuple[str, ...]:
        """A row of the table."""
        times = ("-" if one is None else f"{one:,.0f}" for one in (self.p50_ms, self.p99_ms))
        return (self.what, f"{self.answered:,}", f"{self.refused:,}", *times)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Queries with the same error."""

    status: int
    error: str
    count: int
    names_a_limit: bool


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """The memory of a process before the load, and how far it rose above that."""

    name: str
    idle_bytes: int
    rise_bytes: int

    def __str__(self) -> str:
        return f"{self.name} {self.rise_bytes / MIB:,.0f} MB above {self.idle_bytes / MIB:,.0f} MB"


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The results of a load."""

    clients: int
    seconds: float
    read_speed: float
    """Samples per second when the shard read the existing records after its start."""
    written_speed: float
    ingested_speed: float
    """Samples per second while clients queried."""
    answers: int
    with_warnings: int
    queries: tuple[Latencies, ...]
    refusals: tuple[Refusal, ...]
    lags: tuple[Lag, ...]
    read_all_s: float | None
    """The seconds from the last record's write until all were read; None after a timeout."""
    memory: tuple[ProcessMemory, ...]

    @property
    def max_lag(self) -> Lag:
        """The maximum lag while clients queried."""
        return max(self.lags, key=lambda one: one.behind_s)

    def check(self) -> None:
        """Raises `LoadFailed` if a query failed for another reason than a limit, or if records were left unread."""
        unnamed = [one for one in self.refusals if not one.names_a_limit]
        if unnamed:
            texts = "; ".join(f"{one.count:,} x {one.status} {one.error}" for one in unnamed)
            raise LoadFailed(f"queries failed for other reasons than a limit: {texts}")
        if self.read_all_s is None:
            raise LoadFailed("the shard did not read all records in time after the load")

    def blocks(self) -> Iterator[Block]:
        """The results as lines and tables."""
        maximum, last = self.max_lag, self.lags[-1]
        read = "not in time" if self.read_all_s is None else f"{self.read_all_s:.1f} s"
        yield (
            f"{self.clients} clients for {self.seconds:.0f} s, while {self.written_speed:,.0f} samples/s were written "
            f"and {self.ingested_speed:,.0f} read; the shard alone read {self.read_speed:,.0f} samples/s before"
        )
        yield (
            f"lag: at most {maximum.behind_s:.1f} s ({max(one.records for one in self.lags):,} records), "
            f"{last.behind_s:.1f} s ({last.records:,} records) at the end; all were read {read} after the last record"
        )
        yield f"{self.answers:,} answers, {self.with_warnings:,} of them with warnings"
        yield "peak memory: " + "; ".join(map(str, self.memory))
        yield ""
        yield Table(("query", "answered", "refused", "p50 ms", "p99 ms"), tuple(one.row() for one in self.queries))
        if self.refusals:
            yield ""
            rows = ((str(one.status), one.error, f"{one.count:,}") for one in self.refusals)
            yield Table(("status", "error", "count"), tuple(rows))
        yield ""
        rows = (
            (f"{one.seconds:.0f}", f"{one.records:,}", f"{one.behind_s:.1f}") for one in downsampled(self.lags, _ROWS)
        )
        yield Table(("second", "lag in records", "lag in seconds"), tuple(rows))


def speed_of(points: Sequence[tuple[float, int]], wanted: int) -> float:
    """Samples per second, from pairs of a time and the samples read until then: from the last time with none to the
    first time with all `wanted`.
    """
    began = max((seconds for seconds, read in points if read == 0), default=points[0][0])
    ended, read = next(((seconds, read) for seconds, read in points if read >= wanted), points[-1])
    return read / max(ended - began, 1e-3)


def records_due(seconds: float, records_a_second: float, total: int) -> int:
    """The number of records that should have been written after this time."""
    return min(total, int(seconds * records_a_second))


def lags_of(progress: Sequence[ProgressSample], written_at: Sequence[float]) -> tuple[Lag, ...]:
    """The lag of each sample. `written_at` has the time at which each record was written, in seconds."""
    found = []
    for look in progress:
        # A record that was written while the position was queried may be read, but is not counted as written.
        records = max(0, look.written - look.read)
        behind = look.seconds - written_at[look.read] if records else 0.0
        found.append(Lag(look.seconds, records, max(0.0, behind)))
    return tuple(found)


def ingested_speed(progress: Sequence[ProgressSample]) -> float:
    """Samples per second from the first progress sample to the last."""
    first, last = progress[0], progress[-1]
    return (last.ingested - first.ingested) / max(last.seconds - first.seconds, 1e-3)


def latencies_of(whats: Sequence[str], asked: Sequence[QueryOutcome]) -> tuple[Latencies, ...]:
    """The latencies of each query, in the order of the names."""
    found = []
    for what in whats:
        mine = [one for one in asked if one.what == what]
        times = sorted(one.milliseconds for one in mine if one.is_answer)
        found.append(Latencies(what, len(times), len(mine) - len(times), _quantile(times, 0.5), _quantile(times, 0.99)))
    return tuple(found)


def refusals_of(asked: Sequence[QueryOutcome]) -> tuple[Refusal, ...]:
    """The refused queries by status and text, the most frequent first."""
    counts = Counter((one.status, one.error[:_MAX_TEXT], one.names_a_limit) for one in asked if not one.is_answer)
    return tuple(Refusal(status, error, count, named) for (status, error, named), count in counts.most_common())


def downsampled(lags: Sequence[Lag], max_rows: int) -> tuple[Lag, ...]:
    """At most `max_rows` of them, at equal distances and including the last one."""
    every = max(1, -(-len(lags) // max_rows))
    return tuple(reversed(lags[::-1][::every]))


def memory_of(idle: Mapping[str, int], rise: Mapping[str, int]) -> tuple[ProcessMemory, ...]:
    """The memory of processes by their names."""
    return tuple(ProcessMemory(name, idle[name], rise.get(name, 0)) for name in sorted(idle))


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
