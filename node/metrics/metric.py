"""The definition of a metric in the catalogue."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Prometheus' metric types. An info metric is a gauge that is always 1 and has its values in labels."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its full name as in queries, its meaning, and what to do about its values."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str
    action: str


@dataclass(frozen=True, slots=True)
class Section:
    """A titled group of metrics."""

    title: str
    metrics: tuple[Metric, ...]


def counter(name: str, meaning: str, action: str, *, labels: tuple[str, ...] = ()) -> Metric:
    """A value that only rises during the life of the process."""
    return Metric(name, Kind.COUNTER, labels, meaning, action)


def gauge(name: str, meaning: str, action: str, *, labels: tuple[str, ...] = ()) -> Metric:
    """A value that rises and falls."""
    return Metric(name, Kind.GAUGE, labels, meaning, action)


def histogram(name: str, meaning: str, action: str, *, labels: tuple[str, ...] = ()) -> Metric:
    """A distribution."""
    return Metric(name, Kind.HISTOGRAM, labels, meaning, action)


def info(name: str, meaning: str, action: str, *, labels: tuple[str, ...]) -> Metric:
    """Values in labels."""
    return Metric(name, Kind.INFO, labels, meaning, action)
