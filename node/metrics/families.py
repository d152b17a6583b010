"""Metric families as they are exposed, made of the catalogue's metrics."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.core import Metric as Family

from strandline.node.metrics.metric import Kind, Metric


@dataclass(frozen=True, slots=True)
class Distribution:
    """How many were at most as large as each of the bounds, which rise; how many there were at all, and their sum."""

    bounds: Sequence[float]
    cumulative: Sequence[int]
    count: int
    total: float


class Families:
    """The families of some of the catalogue's metrics, each with its values, in the order of the catalogue.

    What nobody knows is not put, and a family without a value is exposed without one.
    """

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._families = {metric.name: (metric, _family(metric)) for metric in metrics}

    def put(self, metric: Metric, value: float | None, *labels: str) -> None:
        """Give a value, with those of its labels; None for one that nobody knows. Raises `KeyError` for a metric that
        is not among the families.
        """
        _, family = self._families[metric.name]
        _check(metric, labels)
        if value is not None and isinstance(family, CounterMetricFamily | GaugeMetricFamily):
            family.add_metric(labels, value)

    def put_distribution(self, metric: Metric, value: Distribution, *labels: str) -> None:
        """The same for a histogram."""
        _, family = self._families[metric.name]
        _check(metric, labels)
        if isinstance(family, HistogramMetricFamily):
            buckets = [(str(float(bound)), count) for bound, count in zip(value.bounds, value.cumulative, strict=True)]
            family.add_metric(labels, [*buckets, ("+Inf", value.count)], value.total)

    def put_info(self, metric: Metric, *labels: str) -> None:
        """The same for what stands in labels."""
        _, family = self._families[metric.name]
        _check(metric, labels)
        if isinstance(family, InfoMetricFamily):
            family.add_metric([], dict(zip(metric.labels, labels, strict=True)))

    def all(self) -> tuple[Family, ...]:
        """All of them."""
        return tuple(family for _, family in self._families.values())


def _family(metric: Metric) -> Family:
    match metric.kind:
        case Kind.COUNTER:
            return CounterMetricFamily(metric.name, metric.meaning, labels=metric.labels)
        case Kind.GAUGE:
            return GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
        case Kind.HISTOGRAM:
            return HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)
        case Kind.INFO:
            return InfoMetricFamily(metric.name.removesuffix("_info"), metric.meaning)


def _check(metric: Metric, labels: Sequence[str]) -> None:
    if len(labels) != len(metric.labels):
        raise ValueError(f"{metric.name} has the labels {metric.labels}, and {labels} were given")


def in_seconds(milliseconds: int | None) -> float | None:
    """Of a time in milliseconds that may not be known."""
    return milliseconds / 1000 if milliseconds is not None else None
