"""Jobs that send series, with in-memory store, Kafka and nodes, and workers that may crash at any call."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import xxhash

from strandline.errors import Retryable
from strandline.jobs.completing import CallWebhook, Completion
from strandline.jobs.control_sample import ControlSample
from strandline.jobs.landing.memory_part_log import MemoryRecord
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.sending.send_kind import SEND, SendKind
from strandline.jobs.sending.series import SentSeries, SeriesPage, SeriesQuery
from strandline.jobs.sending.spec import SendSpec, equal_ranges
from strandline.jobs.worker import BulkWorker
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.time_range import TimeRange
from support.bulk_worlds import DATASET, LIFE, NOW, BulkWorld, Fault, Hooked

TEMPLATE = {"key": "{host}", "value": {"host": "{host}", "load": "{$value}"}}


class AnswerLacking(Retryable):
    """A node's answer had a warning."""


def series(number: int, **labels: str) -> SentSeries:
    """A series with these labels."""
    known = {"__name__": "up", "host": f"host-{number}", **labels}
    return SentSeries(key_of(known), known, NOW - 1000, NOW, NOW - 10, float(number))


def key_of(labels: Mapping[str, str]) -> int:
    return xxhash.xxh3_128_intdigest(repr(sorted(labels.items())).encode())


class FakeNodes:
    """Nodes whose series may change between two requests."""

    def __init__(self, *some: SentSeries) -> None:
        self.series = {series.key: series for series in some}
        self.warns = False
        self.queries: list[SeriesQuery] = []

    def add(self, *some: SentSeries) -> None:
        self.series |= {series.key: series for series in some}

    def page(self, query: SeriesQuery) -> SeriesPage:
        self.queries.append(query)
        if self.warns:
            raise AnswerLacking("shard 3 is replaying")
        found = [self.series[key] for key in sorted(self.series) if query.first <= key <= query.last]
        shown = found[: query.limit]
        if not query.newest:
            shown = [replace(series, time=None, value=None) for series in shown]
        return SeriesPage(tuple(shown), len(found) > query.limit)


class SendWorld(BulkWorld):
    """A store, a topic, nodes, and any number of workers one after the other."""

    def __init__(self, folder: Path, *some: SentSeries, failures_allowed: int = 3) -> None:
        super().__init__(failures_allowed)
        self.folder = folder
        self.nodes = FakeNodes(*some)
        self.webhook: CallWebhook | None = None
        self.events: Path | None = folder / "events"

    def planned(
        self, parts: int = 3, template: Mapping[str, Any] = TEMPLATE, name: str = "job", due_at: int = 0, **spec: Any
    ) -> BulkJob:
        """A plan to send all series."""
        window = TimeRange(NOW - 300_000, NOW)
        made = SendSpec("up", "target", window, template, **{"chunk_series": 4, **spec})
        sources = [part.to_json("up") for part in equal_ranges(parts)]
        job = BulkJob(DATASET, name, SEND, made.to_json(), "hash", parts, LIFE, NOW, due_at=due_at)
        self.board.add(job, [BulkPart(DATASET, name, at, source, LIFE) for at, source in enumerate(sources)])
        return job

    def worker(self, fault: Fault | None = None) -> BulkWorker:
        def open_log(topic: str) -> PartLog:
            assert topic == "target"
            return PartLog(self.transactions(fault), self.clock, [])

        nodes: Any = Hooked(self.nodes, fault, self.calls)
        kind = SendKind(open_log, nodes, self.clock, Completion(self.clock, self.events, self.webhook))
        return BulkWorker(self.board_of(self.store(fault), self.clock), {SEND: kind}, self.clock, self.new_name())

    def records(self) -> list[MemoryRecord]:
        """The visible records of the topic."""
        return [record for records in self.cluster.read().values() for record in records]

    def job(self, name: str = "job") -> BulkJob:
        return self.board.job(name)

    def control(self, fraction: float, seed: int = 7) -> ControlSample:
        return ControlSample(fraction, seed)
