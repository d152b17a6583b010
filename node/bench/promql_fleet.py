"""Generated scrapes of services, with typical metrics: counters, classic histograms, gauges, and an info series of each
target.

Of 50 series, a target has 30 counters, 5 gauges, and on average 15 histogram buckets: every fourth target has a second
histogram. In addition, each target has a counter of calls, a counter of errors, and an info series. All series of a
target have the same sample times.
"""

from collections.abc import Iterator

import numpy as np

from strandline.arrays import F64s, I64s
from strandline.node.bench.scrapes import INTERVAL_MS, Template
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress

JOBS = 20
SERIES_A_TARGET = 50
_HANDLERS, _CODES, _POOLS = 10, ("200", "404", "500"), 5
_BOUNDS = ("0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "+Inf")
_COUNTERS = _HANDLERS * len(_CODES)
_TARGETS_A_RECORD = 40
# No sample is exactly at the start of a window, where Prometheus 2 and 3 differ.
_MARGIN_MS = 10
Labels = list[tuple[str, str]]


def histograms_of(target: int) -> int:
    """The number of histograms of a target."""
    return 2 if target % 4 == 0 else 1


def labels_of(target: int) -> list[Labels]:
    """The labels of a target's series, in the order in which it exposes them."""
    common = [("cluster", f"cluster-{target % 4}"), ("instance", instance(target)), ("job", f"job-{target % JOBS:02}")]
    named: list[Labels] = [
        [("__name__", "app_requests_total"), ("code", code), ("handler", f"/api/v1/resource-{handler}")]
        for handler in range(_HANDLERS)
        for code in _CODES
    ]
    named += [[("__name__", "app_memory_bytes"), ("pool", f"pool-{pool}")] for pool in range(_POOLS)]
    named += [
        [("__name__", "app_request_seconds_bucket"), ("le", bound), ("method", method)]
        for method in ("GET", "PUT")[: histograms_of(target)]
        for bound in _BOUNDS
    ]
    named += [[("__name__", "app_calls_total")], [("__name__", "app_errors_total")]]
    named.append([("__name__", "app_build_info"), ("version", f"1.{target % 7}.0")])
    return [sorted(one + common) for one in named]


def instance(target: int) -> str:
    """The address of a target."""
    return f"host-{target:05}.example.com:9100"


class PromqlScrapes:
    """Consecutive scrapes of approximately `series` series, the same in each run."""

    def __init__(self, series: int, first_time: int) -> None:
        self._first_time = first_time
        self._targets = max(1, series // SERIES_A_TARGET)
        self._rng = np.random.default_rng(21)
        rng, targets = self._rng, self._targets
        self._groups = [range(at, min(at + _TARGETS_A_RECORD, targets)) for at in range(0, targets, _TARGETS_A_RECORD)]
        self._templates = [_template(group, first_time) for group in self._groups]
        self._offset = rng.integers(_MARGIN_MS, INTERVAL_MS - _MARGIN_MS, targets)
        counts = np.array([_COUNTERS + _POOLS + len(_BOUNDS) * histograms_of(one) + 3 for one in range(targets)])
        self._target_of = np.repeat(np.arange(targets), counts)
        self._first = np.append(0, np.cumsum(counts))
        self.series = len(self._target_of)
        """The exact number of series."""
        self._rates = 10.0 ** rng.uniform(-1, 3, (targets, _COUNTERS))
        self._counters = np.zeros((targets, _COUNTERS))
        self._gauges = np.round(rng.uniform(1e6, 1e9, (targets, _POOLS)))
        self._weights = rng.uniform(0, 5, (2 * targets, len(_BOUNDS)))
        self._buckets = np.zeros((2 * targets, len(_BOUNDS)))
        self._calls = np.zeros((targets, 2))
        self._scrapes_done = 0

    @property
    def next_time(self) -> int:
        """When the next scrape begins."""
        return self._first_time + self._scrapes_done * INTERVAL_MS

    def next(self, begin: int | None = None) -> Iterator[bytes]:
        """The compressed bodies of the next scrape. It begins at `begin`, or by default when it is due."""
        self._advance()
        values = self._values()
        times = self._offset + (self.next_time if begin is None else begin)
        self._scrapes_done += 1
        for group, template in zip(self._groups, self._templates, strict=True):
            part = slice(int(self._first[group.start]), int(self._first[group.stop]))
            yield compress(template.filled(times[self._target_of[part]], values[part]))

    def _advance(self) -> None:
        rng = self._rng
        self._counters += rng.poisson(self._rates)
        moved = rng.integers(0, 2, self._gauges.shape)
        self._gauges = np.abs(self._gauges + np.round(rng.normal(0, 1e5, self._gauges.shape)) * moved)
        self._buckets += np.cumsum(rng.poisson(self._weights), axis=1)
        calls = rng.poisson(40.0, self._targets)
        self._calls[:, 0] += calls
        self._calls[:, 1] += rng.binomial(calls, 0.02)

    def _values(self) -> F64s:
        """The values of all series, target by target."""
        info = np.ones((self._targets, 1))
        width, targets = len(_BOUNDS), self._targets
        buckets = self._buckets.reshape(targets, 2 * width)
        every = np.hstack((self._counters, self._gauges, buckets, self._calls, info))
        has_two = np.arange(targets) % 4 == 0
        is_there = np.ones(every.shape, dtype=np.bool_)
        second = _COUNTERS + _POOLS + width
        is_there[~has_two, second : second + width] = False
        values: F64s = every[is_there]
        return values


def _template(targets: range, time: int) -> Template:
    encoded = [encode_request([Series(labels, [(time, 1.0)])]) for target in targets for labels in labels_of(target)]
    ends: I64s = np.cumsum([len(one) for one in encoded], dtype=np.int64)
    return Template(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends)
