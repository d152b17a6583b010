"""Metric families with values, for metrics of the catalogue."""

import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.core import Metric as Family

from strandline import __version__
from strandline.node.metrics.metric import Kind, Metric
from strandline.node.metrics.node_metrics import BUILD


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram: the cumulative count for each of the ascending upper bounds, the total count, and the sum."""

    bounds: Sequence[float]
    cumulative: Sequence[int]
    count: int
    total: float


class Families:
    """The families of some of the catalogue's metrics, in the order of the catalogue.

    Unknown values are not put. A family without values is exposed with its help and type only.
    """

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._families = {metric.name: (metric, _family(metric)) for metric in metrics}

    def put(self, metric: Metric, value: float | None, *labels: str) -> None:
        """Add a value with its labels' values; None, an unknown value, adds nothing. Raises `KeyError` for a metric
        that is not among the families.
        """
        _, family = self._families[metric.name]
        _check(metric, labels)
        if value is not None and isinstance(family, CounterMetricFamily | GaugeMetricFamily):
            family.add_metric(labels, value)

    def put_distribution(self, metric: Metric, value: Distribution, *labels: str) -> None:
        """Add a histogram."""
        _, family = self._families[metric.name]
        _check(metric, labels)
        if isinstance(family, HistogramMetricFamily):
            buckets = [(str(float(bound)), count) for bound, count in zip(value.bounds, value.cumulative, strict=True)]
            family.add_metric(labels, [*buckets, ("+Inf", value.count)], value.total)

    def put_info(self, metric: Metric, *labels: str) -> None:
        """Add an info metric, whose values are its labels."""
        _, family = self._families[metric.name]
        _check(metric, labels)
        if isinstance(family, InfoMetricFamily):
            family.add_metric([], dict(zip(metric.labels, labels, strict=True)))

    def put_build(self) -> None:
        """Add the versions of Strandline and Python."""
        self.put_info(BUILD, __version__, platform.python_version())

    def all(self) -> tuple[Family, ...]:
        """All families."""
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
        raise ValueError(f"{metric.name} has the labels {metric.labels}, but {labels} were given")


def in_seconds(milliseconds: int | None) -> float | None:
    """Milliseconds in seconds; None if unknown."""
    return milliseconds / 1000 if milliseconds is not None else None
