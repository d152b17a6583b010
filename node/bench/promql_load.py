"""Clients that send all PromQL queries in turn while the shard ingests at half of its maximum speed.

New scrapes follow the existing ones, with the same series, and at the interval that results from the speed. Their
records are generated in advance. Queries are for the hour up to the newest scrape, so they read the new samples.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from confluent_kafka import Producer

from strandline.clock import Clock, wait_until
from strandline.node.bench.load_report import (
    LoadReport,
    ProgressSample,
    QueryOutcome,
    ingested_speed,
    lags_of,
    latencies_of,
    memory_of,
    records_due,
    refusals_of,
)
from strandline.node.bench.prepared_records import PreparedRecords
from strandline.node.bench.promql_fleet import PromqlScrapes
from strandline.node.bench.promql_queries import QUERIES, PromqlQuery, QueryRange
from strandline.node.bench.promql_servers import MemoryPeak
from strandline.node.bench.query_servers import Server
from strandline.node.bench.replay_bench import NotProduced
from strandline.node.bench.timed_connection import NotAnswered, TimedAnswer, TimedConnection
from strandline.node.steps import Step, Steps

_SHARE = 0.5
_TIMEOUT = "30s"
_POLL_S = 1.0
_PACE_S = 0.005
# The bytes of an answer that are kept: enough for an error, or for the warnings at its end.
_KEPT = 4096
_JOIN_S = 150.0
_READ_TIMEOUT_S = 120.0
_FIGURE = re.compile(r"^strandline_(position_offset|ingested_samples_total)\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The number of clients, and the duration."""

    clients: int
    seconds: float = 60.0


class Log(Protocol):
    """The partition that a shard reads."""

    def write(self, body: bytes) -> None:
        """Append a record, now or soon."""
        ...

    def flush(self) -> None:
        """Wait until all records are in Kafka. Raises `NotProduced`."""
        ...


class KafkaPartition:
    """Partition 0 of a topic."""

    def __init__(self, bootstrap_servers: str, topic: str, clock: Clock) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", "linger.ms": 5})
        self._topic, self._clock = topic, clock
        self._refused = list[object]()

    def write(self, body: bytes) -> None:
        while True:
            try:
                now = self._clock.now_ms()
                self._producer.produce(self._topic, value=body, partition=0, timestamp=now, on_delivery=self._delivered)
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)

    def flush(self) -> None:
        if self._producer.flush(_READ_TIMEOUT_S) or self._refused:
            raise NotProduced(f"Kafka did not accept all records: {self._refused[:1] or 'no answer in time'}")

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self._refused.append(error)


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """The partition for the records, the node for queries, the partition's current end, and the shard's read speed."""

    log: Log
    node: Server
    first_offset: int
    read_speed: float


class PromqlLoad:
    """One run of a load."""

    def __init__(
        self, options: LoadOptions, target: LoadTarget, scrapes: PromqlScrapes, folder: Path, clock: Clock
    ) -> None:
        """`scrapes` must be at the scrape after the newest one that the shard has."""
        self._options, self._target, self._scrapes, self._clock = options, target, scrapes, clock
        self._speed = _SHARE * target.read_speed
        self._records = PreparedRecords(folder / "records")
        self._first_ms = scrapes.next_time
        self._outcomes, self._written_at, self._progress = list[QueryOutcome](), list[float](), list[ProgressSample]()
        self._is_over, self._failures = threading.Event(), list[BaseException]()
        self._began = 0.0

    def run(self, steps: Steps) -> LoadReport:
        """Generate the records, and run the load. Raises errors of the writing thread."""
        with steps.step("Making records for the load") as step:
            self._records.fill(self._bodies(step))
        peak = MemoryPeak(self._target.node)
        with steps.step(f"{self._options.clients} clients") as step, closing(self._target.node.connect()) as link:
            self._began = self._clock.monotonic()
            read_all_s = self._run_beside(link, step)
        written = len(self._written_at)
        return LoadReport(
            clients=self._options.clients,
            seconds=self._options.seconds,
            read_speed=self._target.read_speed,
            written_speed=self._speed * written / max(1, self._records.count),
            ingested_speed=ingested_speed(self._progress),
            answers=sum(one.is_answer for one in self._outcomes),
            with_warnings=sum(one.has_warnings for one in self._outcomes),
            queries=latencies_of([query.what for query in QUERIES], self._outcomes),
            refusals=refusals_of(self._outcomes),
            lags=lags_of(self._progress, self._written_at),
            read_all_s=read_all_s,
            memory=memory_of(peak.idle, peak.rises()),
        )

    def _run_beside(self, link: TimedConnection, step: Step) -> float | None:
        """Run the load. Returns the seconds from the last record's write until all were read; None after a timeout."""
        writer = threading.Thread(target=self._write_or_record_failure, daemon=True)
        clients = [threading.Thread(target=self._ask, args=(one,), daemon=True) for one in range(self._options.clients)]
        for thread in (writer, *clients):
            thread.start()
        try:
            while (now := self._seconds()) < self._options.seconds and not self._failures:
                self._progress.append(self._sample_progress(link))
                step.note = f"{now:.0f} s, {len(self._outcomes):,} queries"
                self._clock.sleep(max(0.0, _POLL_S - (self._seconds() - now)))
            self._is_over.set()
            writer.join(_JOIN_S)
            # Running queries continue meanwhile.
            read_all_s = self._time_to_read_all(link)
        finally:
            self._is_over.set()
            for thread in (writer, *clients):
                thread.join(_JOIN_S)
        if self._failures:
            raise self._failures[0]
        return read_all_s

    def _time_to_read_all(self, link: TimedConnection) -> float | None:
        written = len(self._written_at)
        if not wait_until(
            lambda: self._sample_progress(link).read >= written, timeout=_READ_TIMEOUT_S, clock=self._clock, poll=0.1
        ):
            return None
        return max(0.0, self._seconds() - self._written_at[-1]) if written else 0.0

    def _bodies(self, step: Step) -> Iterator[bytes]:
        """The bodies of scrapes, at the interval that results from the speed."""
        distance = 1000 * self._scrapes.series / self._speed
        count = max(1, round(1000 * self._options.seconds / distance))
        for number in range(count):
            yield from self._scrapes.next(self._first_ms + round(number * distance))
            step.note = f"scrape {number + 1:,} of {count:,}"

    def _write_or_record_failure(self) -> None:
        try:
            self._write()
        except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
            self._failures.append(error)

    def _write(self) -> None:
        log = self._target.log
        a_second = self._records.count / self._options.seconds
        for body in self._records:
            while records_due(self._seconds(), a_second, self._records.count) <= len(self._written_at):
                if self._is_over.wait(_PACE_S):
                    break
            if self._is_over.is_set():
                break
            log.write(body)
            self._written_at.append(self._seconds())
        log.flush()

    def _ask(self, number: int) -> None:
        """One client. Each begins with a different query."""
        link: TimedConnection | None = None
        next_query = number
        while not self._is_over.is_set():
            query, began = QUERIES[next_query % len(QUERIES)], self._clock.monotonic()
            next_query += 1
            try:
                link = link if link is not None else self._target.node.connect()
                asked = outcome_of(query, link.get(self._path(query), kept=_KEPT))
            except (NotAnswered, OSError) as error:
                link = None
                asked = QueryOutcome(query.what, 1000 * (self._clock.monotonic() - began), 0, str(error))
            self._outcomes.append(asked)
        if link is not None:
            link.close()

    def _path(self, query: PromqlQuery) -> str:
        end = self._first_ms // 1000 + int(self._seconds())
        return f"{QueryRange(1, 60, end).target(query.expression)}&timeout={_TIMEOUT}"

    def _sample_progress(self, link: TimedConnection) -> ProgressSample:
        # Read before the request, so that a slow response does not increase the lag.
        seconds, written = self._seconds(), len(self._written_at)
        found = dict(_FIGURE.findall(link.get("/metrics").body.decode()))
        read = round(float(found["position_offset"])) - self._target.first_offset
        return ProgressSample(seconds, written, read, round(float(found["ingested_samples_total"])))

    def _seconds(self) -> float:
        return self._clock.monotonic() - self._began


def outcome_of(query: PromqlQuery, answer: TimedAnswer) -> QueryOutcome:
    """The outcome of a query from its response."""
    if answer.status == 200:
        return QueryOutcome(query.what, answer.milliseconds, 200, has_warnings=b'"warnings":[' in answer.body)
    try:
        text = str(json.loads(answer.body)["error"])
    except (ValueError, KeyError, TypeError):
        text = answer.body[:200].decode(errors="replace")
    return QueryOutcome(query.what, answer.milliseconds, answer.status, text or "no text")
