"""The gateway's statistics since its start."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

LATENCY_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""The upper bounds of the latency histogram's buckets, in seconds, without +Inf."""


class Outcome(StrEnum):
    """The result of a request."""

    WRITTEN = "written"
    PARTLY_WRITTEN = "partly-written"
    REFUSED = "refused"
    UNSUPPORTED = "unsupported"
    REMOTE_WRITE_2 = "remote-write-2"
    TOO_LARGE = "too-large"
    PUT_OFF = "put-off"
    KAFKA_UNAVAILABLE = "kafka-unavailable"
    CLOCKS_DISAGREE = "clocks-disagree"
    STOPPING = "stopping"
    CLIENT_GONE = "client-gone"
    FAILED = "failed"


class GatewayStage(StrEnum):
    """The stages of processing a request, in their order. They exclude HTTP and the threads of Kafka's client."""

    UNPACK = "unpack"
    SPLIT = "split"
    PACK = "pack"
    PRODUCE = "produce"


@dataclass(frozen=True, slots=True)
class ProducerCounts:
    """Statistics of Kafka's client: retried requests, errors of all kinds, and how often the client was replaced, after
    a fatal error or because the topic was created again.
    """

    retries: int = 0
    errors: int = 0
    renewals: int = 0


@dataclass(frozen=True, slots=True)
class GatewayFigures:
    """A snapshot of the statistics. All are counters, except for the constant `in_flight_limit` and the gauges
    `in_flight_bytes`, `arriving_bytes` (the part of it that belongs to requests whose body has not fully arrived),
    `unacknowledged_seconds` (how long the oldest request has waited for Kafka; 0 if none does), `waiting_requests`,
    `partitions` and `clock_difference_ms`.

    `requests` is by outcome. `series`, `samples`, `records` and `bytes_out` count requests of which Kafka has
    acknowledged every record. `bytes_in` counts bodies as sent. `dropped_series` is by reason. Exemplars and histograms
    are counted here only for series that the gateway removes: shards count the others. `clock_difference_ms` is the
    brokers' time minus the gateway's; None if unknown. `unauthorized` counts requests of all kinds that were answered
    with 401 or 403, which are not in `requests`. `latency_buckets` are cumulative, as in Prometheus: the number of
    requests that took at most `LATENCY_BOUNDS_S[i]`. `stages` has seconds of CPU time.
    """

    requests: Mapping[Outcome, int]
    series: int
    samples: int
    records: int
    bytes_in: int
    bytes_out: int
    dropped_series: Mapping[str, int]
    series_without_samples: int
    skipped_exemplars: int
    skipped_histograms: int
    skipped_metadata: int
    in_flight_bytes: int
    in_flight_limit: int
    arriving_bytes: int
    unacknowledged_seconds: float
    waiting_requests: int
    partitions: int
    kafka: ProducerCounts
    clock_difference_ms: int | None
    unauthorized: Mapping[int, int]
    latency_seconds: float
    latency_count: int
    latency_buckets: tuple[int, ...]
    stages: Mapping[GatewayStage, float]


@dataclass(slots=True)
class GatewayCounters:
    """The counters. Only the event loop's thread accesses them."""

    requests: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    series: int = 0
    samples: int = 0
    records: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    dropped_series: dict[str, int] = field(default_factory=dict)
    series_without_samples: int = 0
    skipped_exemplars: int = 0
    skipped_histograms: int = 0
    skipped_metadata: int = 0
    unauthorized: dict[int, int] = field(default_factory=lambda: {401: 0, 403: 0})
    latency_seconds: float = 0.0
    latencies: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BOUNDS_S) + 1))
    stages: dict[GatewayStage, float] = field(default_factory=lambda: dict.fromkeys(GatewayStage, 0.0))

    def began(self) -> None:
        """A request of any kind has begun. Not counted."""

    def cut_off(self, _reason: str) -> None:
        """A response was interrupted. Not counted: a gateway's responses are single lines."""

    def ended(self, _handler: str | None, code: int, _seconds: float) -> None:
        """A request of any kind was answered with this status code, by the gateway or by the HTTP server."""
        if code in self.unauthorized:
            self.unauthorized[code] += 1

    def answered(self, outcome: Outcome, seconds: float) -> None:
        """A remote-write request has ended."""
        self.requests[outcome] += 1
        self.latency_seconds += seconds
        bucket = 0
        while bucket < len(LATENCY_BOUNDS_S) and seconds > LATENCY_BOUNDS_S[bucket]:
            bucket += 1
        self.latencies[bucket] += 1

    def figures(
        self,
        *,
        in_flight: int,
        limit: int,
        waiting: int,
        arriving: int = 0,
        unacknowledged_s: float = 0.0,
        partitions: int,
        kafka: ProducerCounts,
        clock_difference_ms: int | None = None,
    ) -> GatewayFigures:
        """A snapshot."""
        buckets, cumulative = [], 0
        for count in self.latencies[:-1]:
            cumulative += count
            buckets.append(cumulative)
        return GatewayFigures(
            requests=dict(self.requests),
            series=self.series,
            samples=self.samples,
            records=self.records,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            dropped_series=dict(self.dropped_series),
            series_without_samples=self.series_without_samples,
            skipped_exemplars=self.skipped_exemplars,
            skipped_histograms=self.skipped_histograms,
            skipped_metadata=self.skipped_metadata,
            in_flight_bytes=in_flight,
            in_flight_limit=limit,
            arriving_bytes=arriving,
            unacknowledged_seconds=unacknowledged_s,
            waiting_requests=waiting,
            partitions=partitions,
            kafka=kafka,
            clock_difference_ms=clock_difference_ms,
            unauthorized=dict(self.unauthorized),
            latency_seconds=self.latency_seconds,
            latency_count=sum(self.latencies),
            latency_buckets=tuple(buckets),
            stages=dict(self.stages),
        )
