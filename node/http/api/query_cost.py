"""The cost of a PromQL query: for `stats`, and for the log of slow and heavy queries."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.node.http.errors import fault_of

log = structlog.get_logger(__name__)

_MAX_LOGGED = 2000


@dataclass(slots=True)
class QueryCost:
    """Seconds by phase, and what was read and held. Filled in while the query is answered."""

    prepare_s: float = 0.0
    shards_s: float = 0.0
    front_s: float = 0.0
    fragments: int = 0
    series: int = 0
    samples: int = 0
    peak_samples: int = 0
    bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """Prometheus' statistics, and Strandline's figures."""
        total = self.prepare_s + self.shards_s + self.front_s
        return {
            "timings": {
                "evalTotalTime": self.shards_s + self.front_s,
                "resultSortTime": 0,
                "queryPreparationTime": self.shards_s,
                "innerEvalTime": self.front_s,
                "execQueueTime": 0,
                "execTotalTime": total,
            },
            "samples": {"totalQueryableSamples": self.samples, "peakSamples": self.peak_samples},
            "strandline": {
                "fragments": self.fragments,
                "series": self.series,
                "samples": self.samples,
                "bytes": self.bytes,
                "prepareSeconds": self.prepare_s,
                "shardSeconds": self.shards_s,
                "frontSeconds": self.front_s,
            },
        }


@contextmanager
def log_if_heavy(query: str, cost: QueryCost, clock: Clock, *, slow_s: float, many_samples: int) -> Iterator[None]:
    """Log the query if it takes longer than `slow_s`, or reads or holds more than `many_samples`."""
    began, outcome = clock.monotonic(), "answered"
    try:
        yield
    except asyncio.CancelledError:
        outcome = "cancelled"
        raise
    except StrandlineError as error:
        outcome = fault_of(error).kind
        raise
    finally:
        seconds = clock.monotonic() - began
        if seconds >= slow_s or max(cost.samples, cost.peak_samples) > many_samples:
            log.warning(
                "slow or heavy query",
                query=query[:_MAX_LOGGED],
                outcome=outcome,
                seconds=round(seconds, 3),
                shard_seconds=round(cost.shards_s, 3),
                front_seconds=round(cost.front_s, 3),
                series=cost.series,
                samples=cost.samples,
                peak_samples=cost.peak_samples,
                bytes=cost.bytes,
            )
