"""The PromQL queries that are measured, and their time ranges."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from strandline.node.bench.promql_fleet import instance

_HOUR_S = 3600
# The end of every range has the same offset from a multiple of this.
ALIGNED_S = 360


@dataclass(frozen=True, slots=True)
class PromqlQuery:
    """One query. `differs_on_victoria_metrics`: VictoriaMetrics answers differently, because its `rate` includes the
    sample before the window and does not extrapolate, and its `max_over_time` keeps the metric's name.
    """

    what: str
    expression: str
    differs_on_victoria_metrics: bool = True


@dataclass(frozen=True, slots=True)
class QueryRange:
    """The range of a query, its number of steps, and its end in seconds."""

    hours: float
    steps: int
    end: int

    @property
    def step(self) -> int:
        """The step in seconds."""
        return round(self.hours * _HOUR_S / self.steps)

    def target(self, expression: str) -> str:
        """The path and parameters of a request. Without `nocache`, VictoriaMetrics would round times to multiples of
        the step.
        """
        start = self.end - (self.steps - 1) * self.step
        named = {"query": expression, "start": start, "end": self.end, "step": self.step, "nocache": 1}
        return "/api/v1/query_range?" + urlencode(named)


def ranges(hours: int, end: int) -> tuple[QueryRange, ...]:
    """One hour with 60 steps and, if there are more hours, all of them with 240 steps."""
    short = QueryRange(1, 60, end)
    return (short,) if hours == 1 else (short, QueryRange(hours, 240, end))


_COUNTER, _RATE = "app_requests_total", "rate(app_requests_total[5m])"
_ERRORS = "sum by (job) (rate(app_errors_total[5m])) / sum by (job) (rate(app_calls_total[5m]))"
_ONE = f'rate({_COUNTER}{{instance="{instance(0)}",handler="/api/v1/resource-0",code="200"}}[5m])'
QUERIES: Sequence[PromqlQuery] = (
    PromqlQuery("one series", _ONE),
    PromqlQuery("sum", f"sum({_RATE})"),
    PromqlQuery("sum by (job)", f"sum by (job) ({_RATE})"),
    PromqlQuery("sum without (instance)", f"sum without (instance) ({_RATE})"),
    PromqlQuery("topk", f"topk(10, {_RATE})"),
    PromqlQuery(
        "histogram_quantile",
        "histogram_quantile(0.99, sum by (le, job) (rate(app_request_seconds_bucket[5m])))",
    ),
    PromqlQuery("max_over_time[1h]", "max_over_time(app_memory_bytes[1h])"),
    PromqlQuery("quantile by (job)", "quantile by (job) (0.9, app_memory_bytes)", differs_on_victoria_metrics=False),
    PromqlQuery("errors / calls", _ERRORS),
    PromqlQuery(
        "join", f"{_COUNTER} * on (instance) group_left (version) app_build_info", differs_on_victoria_metrics=False
    ),
    PromqlQuery("subquery", f"max_over_time(sum({_RATE})[1h:1m])"),
    PromqlQuery("count", f"count({_COUNTER})", differs_on_victoria_metrics=False),
)


def scaling_queries() -> Sequence[tuple[float, str]]:
    """A query over increasing shares of the series: a tenth of the jobs, half of them, and all of them."""
    return tuple(
        (share, f"sum by (job) (rate({_COUNTER}{matcher}[5m]))")
        for share, matcher in ((0.1, '{job=~"job-0[01]"}'), (0.5, '{job=~"job-0.*"}'), (1.0, ""))
    )
