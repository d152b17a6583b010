"""A metric as the catalogue has it."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Prometheus' types. An info is a gauge that is always 1, and whose labels are what it tells."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its whole name as a query writes it, and in words what it means and what to do about it."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str
    action: str


@dataclass(frozen=True, slots=True)
class Section:
    """Metrics that belong together, under a title."""

    title: str
    metrics: tuple[Metric, ...]


def counter(name: str, meaning: str, action: str, *, labels: tuple[str, ...] = ()) -> Metric:
    """What only rises while the process lives."""
    return Metric(name, Kind.COUNTER, labels, meaning, action)


def gauge(name: str, meaning: str, action: str, *, labels: tuple[str, ...] = ()) -> Metric:
    """What rises and falls."""
    return Metric(name, Kind.GAUGE, labels, meaning, action)


def histogram(name: str, meaning: str, action: str, *, labels: tuple[str, ...] = ()) -> Metric:
    """How many of what size."""
    return Metric(name, Kind.HISTOGRAM, labels, meaning, action)


def info(name: str, meaning: str, action: str, *, labels: tuple[str, ...]) -> Metric:
    """What stands in labels."""
    return Metric(name, Kind.INFO, labels, meaning, action)
