"""Parses the data of Prometheus' API, and checks its format."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from strandline.jobs.sending.series import SentSeries, SeriesPage
from strandline.node.client.envelope import Envelope
from strandline.node.client.errors import NotANode

Labels = Mapping[str, str]
Item = TypeVar("Item")

# The prefix of Prometheus' warning, and of a node's, that a list was truncated.
_TRUNCATED = "results truncated due to limit"
_PAGE = ("key", "labels", "start", "end", "time", "value")


@dataclass(frozen=True, slots=True)
class ListResult(Generic[Item]):
    """A list, whether it was truncated (`more`), and the node's other warnings and infos."""

    items: tuple[Item, ...]
    more: bool
    warnings: tuple[str, ...]
    infos: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """A time in milliseconds, and a value as the API writes it, such as "1.5", "NaN" or "+Inf"."""

    time: int
    value: str


@dataclass(frozen=True, slots=True)
class SampledSeries:
    """A series and its points."""

    labels: Labels
    points: tuple[Point, ...]


def texts(envelope: Envelope, limit: int) -> ListResult[str]:
    """A list of names or values, cut to `limit`; 0 for no limit."""
    return _list_result(envelope, limit, envelope.data, _text)


def label_sets(envelope: Envelope, limit: int) -> ListResult[Labels]:
    """A list of series."""
    return _list_result(envelope, limit, envelope.data, _labels)


@dataclass(frozen=True, slots=True)
class NodePage:
    """A page of a node's series, and the partitions that the node does not serve."""

    page: SeriesPage
    unserved: frozenset[int]
    warnings: tuple[str, ...]


def series_page(envelope: Envelope) -> NodePage:
    """Series with their key hashes and times, which the API sends as columns."""
    match envelope.data:
        case {"more": bool(more), "unserved": list(unserved), **columns}:
            pass
        case _:
            raise _malformed("a page of series")
    try:
        found = tuple(
            SentSeries(int(key, 16), _labels(labels), int(start), int(end), *_newest(time, value))
            for key, labels, start, end, time, value in zip(*(columns[name] for name in _PAGE), strict=True)
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed("a page of series") from error
    return NodePage(SeriesPage(found, more), frozenset(unserved), envelope.warnings)


def series_count(envelope: Envelope) -> ListResult[int]:
    """The number of series in an answer about cardinality."""
    match envelope.data:
        case {"series": int(number)}:
            return ListResult((number,), more=False, warnings=envelope.warnings)
        case _:
            raise _malformed("a number of series")


@dataclass(frozen=True, slots=True)
class SelectorSize:
    """The number of series that a selector matches, and an estimate of their samples; None if the node sends none."""

    series: int
    samples: int | None


def selector_size(envelope: Envelope) -> ListResult[SelectorSize]:
    """The number of series and samples in an answer about cardinality."""
    match envelope.data:
        case {"series": int(series), "samples": int(samples)}:
            return ListResult((SelectorSize(series, samples),), more=False, warnings=envelope.warnings)
        case _:
            counted = series_count(envelope)
            return ListResult((SelectorSize(counted.items[0], None),), more=False, warnings=counted.warnings)


def _newest(time: int | None, value: str | None) -> tuple[int | None, float | None]:
    if time is None or value is None:
        return None, None
    return time, float(value)


def samples(envelope: Envelope, limit: int) -> ListResult[SampledSeries]:
    """The result of a query: a vector, a matrix, or a scalar or string, which become a series without labels."""
    match envelope.data:
        case {"resultType": "vector" | "matrix", "result": found}:
            return _list_result(envelope, limit, found, _sampled)
        case {"resultType": "scalar" | "string", "result": point}:
            return _list_result(envelope, limit, [{"metric": {}, "value": point}], _sampled)
        case _:
            raise _malformed("a vector, a matrix, a scalar or a string")


@dataclass(frozen=True, slots=True)
class ShardLag:
    """A shard's lag in seconds and in offsets, and its position. Each is None while it is unknown."""

    shard: int
    lag_s: float | None
    unread: int | None = None
    position: int | None = None


def shard_lags(envelope: Envelope) -> list[ShardLag]:
    """The lags of a node's shards."""
    match envelope.data:
        case {"shards": [*shards]}:
            return [_shard_lag(shard) for shard in shards]
        case _:
            raise _malformed("shards")


def _shard_lag(shard: object) -> ShardLag:
    match shard:
        case {"shard": int(number), **fields}:
            lag, unread, position = (fields.get(name) for name in ("lag_s", "lag", "position"))
            return ShardLag(
                number,
                float(lag) if isinstance(lag, int | float) else None,
                unread if isinstance(unread, int) else None,
                position if isinstance(position, int) else None,
            )
        case _:
            raise _malformed("shards")


def _list_result(envelope: Envelope, limit: int, found: object, read: Callable[[object], Item]) -> ListResult[Item]:
    if not isinstance(found, list):
        raise _malformed("a list")
    kept: Sequence[object] = found[:limit] if limit else found
    warnings = [text for text in envelope.warnings if not text.startswith(_TRUNCATED)]
    more = len(kept) < len(found) or len(warnings) < len(envelope.warnings)
    return ListResult(tuple(map(read, kept)), more, tuple(warnings), envelope.infos)


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise _malformed("a string")
    return found


def _labels(found: object) -> Labels:
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise _malformed("labels")
    return found


def _sampled(found: object) -> SampledSeries:
    if not isinstance(found, dict):
        raise _malformed("a series")
    points = found["values"] if "values" in found else [found.get("value")]
    if not isinstance(points, list):
        raise _malformed("points")
    return SampledSeries(_labels(found.get("metric")), tuple(_points(points)))


def _points(found: list[object]) -> Iterator[Point]:
    for one in found:
        match one:
            case [int() | float() as seconds, str() as value]:
                yield Point(round(seconds * 1000), value)
            case _:
                raise _malformed("a point")


def _malformed(expected: str) -> NotANode:
    return NotANode(f"the answer is malformed: expected {expected}", remedy="Check the address")
