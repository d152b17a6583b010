"""Data of Prometheus' API, checked to be of the form that it promises."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from strandline.jobs.sending.series import SentSeries, SeriesPage
from strandline.node.client.envelope import Envelope
from strandline.node.client.errors import NotANode

Labels = Mapping[str, str]
Item = TypeVar("Item")

# How Prometheus, and a node, begin what they say of a list that was cut off.
_TRUNCATED = "results truncated due to limit"
_PAGE = ("key", "labels", "start", "end", "time", "value")


@dataclass(frozen=True, slots=True)
class ListResult(Generic[Item]):
    """A list, whether there is more than it holds, and the node's warnings and infos."""

    items: tuple[Item, ...]
    more: bool
    warnings: tuple[str, ...]
    infos: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """A moment in milliseconds, and a value as the API writes it: every float, and "NaN" and "+Inf"."""

    time: int
    value: str


@dataclass(frozen=True, slots=True)
class SampledSeries:
    """A series and its points."""

    labels: Labels
    points: tuple[Point, ...]


def texts(envelope: Envelope, limit: int) -> ListResult[str]:
    """A list of names or values; `limit` of them at the most, 0 for all."""
    return _answered(envelope, limit, envelope.data, _text)


def label_sets(envelope: Envelope, limit: int) -> ListResult[Labels]:
    """A list of series."""
    return _answered(envelope, limit, envelope.data, _labels)


@dataclass(frozen=True, slots=True)
class NodePage:
    """A page of a node's series, and the partitions that the node does not serve."""

    page: SeriesPage
    unserved: frozenset[int]
    warnings: tuple[str, ...]


def series_page(envelope: Envelope) -> NodePage:
    """Series with their key hashes and times, from columns."""
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
    """The number of series in what was found of their cardinality."""
    match envelope.data:
        case {"series": int(number)}:
            return ListResult((number,), more=False, warnings=envelope.warnings)
        case _:
            raise _malformed("a number of series")


@dataclass(frozen=True, slots=True)
class SelectorSize:
    """How many series a selector matches, and about how many samples they have; None if the node does not tell."""

    series: int
    samples: int | None


def selector_size(envelope: Envelope) -> ListResult[SelectorSize]:
    """The same with the samples."""
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
    """What a query found: a vector, a matrix, or a scalar or a string, which have no labels."""
    match envelope.data:
        case {"resultType": "vector" | "matrix", "result": found}:
            return _answered(envelope, limit, found, _sampled)
        case {"resultType": "scalar" | "string", "result": point}:
            return _answered(envelope, limit, [{"metric": {}, "value": point}], _sampled)
        case _:
            raise _malformed("a vector, a matrix, a scalar or a string")


@dataclass(frozen=True, slots=True)
class ShardLag:
    """For how long records may have waited that a shard has not read, how many offsets these are, and where it reads;
    each is None while it is unknown.
    """

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


def _answered(envelope: Envelope, limit: int, found: object, read: Callable[[object], Item]) -> ListResult[Item]:
    if not isinstance(found, list):
        raise _malformed("a list")
    kept: Sequence[object] = found[:limit] if limit else found
    said = [text for text in envelope.warnings if not text.startswith(_TRUNCATED)]
    more = len(kept) < len(found) or len(said) < len(envelope.warnings)
    return ListResult(tuple(map(read, kept)), more, tuple(said), envelope.infos)


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise _malformed("a text")
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


def _malformed(wanted: str) -> NotANode:
    return NotANode(f"the answer has something else where {wanted} should be", remedy="Check the address")
