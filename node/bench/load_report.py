"""What came of queries that were asked while a shard ingested: answers, errors, and how far reading fell behind.

All of it is computed from what was noted during the run: an `QueryOutcome` for each query and a `ProgressSample` for
each second.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from strandline.errors import Fatal
from strandline.node.bench.machine import MIB
from strandline.node.output import Block, Table

# A refusal that names what to change: a setting of the node, or a parameter of the request.
_LIMIT = re.compile(r"\b(query|http)\.[a-z_]+|\btimeout=")
_MAX_TEXT = 200
_ROWS = 12


class LoadFailed(Fatal):
    """Queries failed for other reasons than a limit, or the shard did not read what was written."""


@dataclass(frozen=True, slots=True)
class QueryOutcome:
    """One query, and what came of it. `error` is its text; `has_warnings` belongs to an answer."""

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
        """Whether it was refused by a limit whose name is in the error."""
        return self.status in (422, 503) and _LIMIT.search(self.error) is not None


@dataclass(frozen=True, slots=True)
class ProgressSample:
    """How far writing and reading were: records written and read since the load began, samples that the shard ingested
    in all, and the seconds since the load began.
    """

    seconds: float
    written: int
    read: int
    ingested: int


@dataclass(frozen=True, slots=True)
class Lag:
    """How far reading was behind writing at one moment: in records, and by the time at which the oldest record that was
    not read yet was written.
    """

    seconds: float
    records: int
    behind_s: float


@dataclass(frozen=True, slots=True)
class Latencies:
    """One query: how often it was answered and refused, and how long an answer took."""

    what: str
    answered: int
    refused: int
    p50_ms: float | None
    p99_ms: float | None

    def row(self) -> tuple[str, ...]:
        """As a table shows it."""
        times = ("-" if one is None else f"{one:,.0f}" for one in (self.p50_ms, self.p99_ms))
        return (self.what, f"{self.answered:,}", f"{self.refused:,}", *times)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Queries that had the same error."""

    status: int
    error: str
    count: int
    names_a_limit: bool


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """A process before the load, and how far it rose above that."""

    name: str
    idle_bytes: int
    rise_bytes: int

    def __str__(self) -> str:
        return f"{self.name} {self.rise_bytes / MIB:,.0f} MB above {self.idle_bytes / MIB:,.0f} MB"


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The figures of a load."""

    clients: int
    seconds: float
    read_speed: float
    """Samples a second, as the shard read what was there before it started."""
    written_speed: float
    ingested_speed: float
    """Samples a second while clients asked."""
    answers: int
    with_warnings: int
    queries: tuple[Latencies, ...]
    refusals: tuple[Refusal, ...]
    lags: tuple[Lag, ...]
    read_all_s: float | None
    """How long after the last record all were read; None if they were not in time."""
    memory: tuple[ProcessMemory, ...]

    @property
    def max_lag(self) -> Lag:
        """The greatest lag while clients asked."""
        return max(self.lags, key=lambda one: one.behind_s)

    def check(self) -> None:
        """Raises `LoadFailed` if a query failed for a reason that is no limit, or if records were left unread."""
        unnamed = [one for one in self.refusals if not one.names_a_limit]
        if unnamed:
            texts = "; ".join(f"{one.count:,} x {one.status} {one.error}" for one in unnamed)
            raise LoadFailed(f"queries failed for other reasons than a limit: {texts}")
        if self.read_all_s is None:
            raise LoadFailed("the shard did not read all records in time after the load")

    def blocks(self) -> Iterator[Block]:
        """The figures as lines and tables."""
        most, last = self.max_lag, self.lags[-1]
        read = "not in time" if self.read_all_s is None else f"{self.read_all_s:.1f} s"
        yield (
            f"{self.clients} clients for {self.seconds:.0f} s, while {self.written_speed:,.0f} samples/s were written "
            f"and {self.ingested_speed:,.0f} read; the shard alone read {self.read_speed:,.0f} samples/s before"
        )
        yield (
            f"lag: at most {most.behind_s:.1f} s ({max(one.records for one in self.lags):,} records), "
            f"{last.behind_s:.1f} s ({last.records:,} records) at the end; all was read {read} after the last record"
        )
        yield f"{self.answers:,} answers, {self.with_warnings:,} of them with warnings"
        yield "memory at most: " + "; ".join(map(str, self.memory))
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
    """Samples a second, from seconds and how many were read by then: from the last look at which none were to the first
    at which all `wanted` were.
    """
    began = max((seconds for seconds, read in points if read == 0), default=points[0][0])
    ended, read = next(((seconds, read) for seconds, read in points if read >= wanted), points[-1])
    return read / max(ended - began, 1e-3)


def records_due(seconds: float, records_a_second: float, total: int) -> int:
    """How many records should have been written after so many seconds."""
    return min(total, int(seconds * records_a_second))


def lags_of(progress: Sequence[ProgressSample], written_at: Sequence[float]) -> tuple[Lag, ...]:
    """The lag at each look. `written_at` has the seconds at which each record was written."""
    found = []
    for look in progress:
        # What was written while the position was asked for is read, but not counted as written.
        records = max(0, look.written - look.read)
        behind = look.seconds - written_at[look.read] if records else 0.0
        found.append(Lag(look.seconds, records, max(0.0, behind)))
    return tuple(found)


def ingested_speed(progress: Sequence[ProgressSample]) -> float:
    """Samples a second from the first look to the last."""
    first, last = progress[0], progress[-1]
    return (last.ingested - first.ingested) / max(last.seconds - first.seconds, 1e-3)


def latencies_of(whats: Sequence[str], asked: Sequence[QueryOutcome]) -> tuple[Latencies, ...]:
    """Of each query, in the order of the names."""
    found = []
    for what in whats:
        mine = [one for one in asked if one.what == what]
        times = sorted(one.milliseconds for one in mine if one.is_answer)
        found.append(Latencies(what, len(times), len(mine) - len(times), _quantile(times, 0.5), _quantile(times, 0.99)))
    return tuple(found)


def refusals_of(asked: Sequence[QueryOutcome]) -> tuple[Refusal, ...]:
    """By status and text, the most frequent first."""
    counts = Counter((one.status, one.error[:_MAX_TEXT], one.names_a_limit) for one in asked if not one.is_answer)
    return tuple(Refusal(status, error, count, named) for (status, error, named), count in counts.most_common())


def downsampled(lags: Sequence[Lag], most: int) -> tuple[Lag, ...]:
    """About `most` of them at equal distances, the last one included."""
    every = max(1, -(-len(lags) // most))
    return tuple(reversed(lags[::-1][::every]))


def memory_of(idle: Mapping[str, int], rise: Mapping[str, int]) -> tuple[ProcessMemory, ...]:
    """Of processes by their names."""
    return tuple(ProcessMemory(name, idle[name], rise.get(name, 0)) for name in sorted(idle))


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
