"""Requests to shards as messages, and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from strandline.index.matchers import Matcher, MatchOp
from strandline.node.query.frames import FrameDamaged, Message
from strandline.node.query.message_fields import (
    PART_ID_BYTES,
    Fields,
    read_hashes,
    read_list,
    read_number,
    read_row,
    read_text,
    read_time_range,
    typed_columns,
)
from strandline.node.query.shard_requests import (
    BucketsRequest,
    CardinalityRequest,
    EvaluateRequest,
    KeyPageRequest,
    LabelNamesRequest,
    LabelValuesRequest,
    SamplesRequest,
    Selector,
    SeriesHashesRequest,
    SeriesRequest,
    ShardRequest,
)
from strandline.promql.plan.fragment_codec import fragment_of_json, fragment_to_json
from strandline.time_range import TimeRange

_REQUESTS = {
    "series": SeriesRequest,
    "label-names": LabelNamesRequest,
    "label-values": LabelValuesRequest,
    "samples": SamplesRequest,
    "evaluate": EvaluateRequest,
    "series-hashes": SeriesHashesRequest,
    "key-page": KeyPageRequest,
    "cardinality": CardinalityRequest,
    "buckets": BucketsRequest,
}
_OPERATORS: Mapping[str, MatchOp] = {op.value: op for op in MatchOp}


def request_message(request: ShardRequest, seconds_left: float) -> Message:
    """A request as a message. The shard has `seconds_left` to answer."""
    kind = next(name for name, cls in _REQUESTS.items() if isinstance(request, cls))
    fields: dict[str, Any] = {"seconds": seconds_left}
    columns: tuple[Any, ...] = ()
    for name in request.__slots__:
        value = getattr(request, name)
        match name:
            case "within":
                fields[name] = [value.first, value.last] if value is not None else None
            case "selectors":
                fields[name] = [_selector_json(selector) for selector in value]
            case "selector":
                fields[name] = _selector_json(value)
            case "without" | "only":
                columns = (np.frombuffer(value, dtype=np.uint8),)
            case "fragment":
                fields[name] = fragment_to_json(value)
            case _:
                fields[name] = value
    return Message(kind, fields, columns)


def request_of(message: Message) -> tuple[ShardRequest, float]:  # noqa: PLR0912 - one for each kind
    """The request of a message, and how many seconds the shard has. Raises `FrameDamaged` or `InvalidMatcher`."""
    fields = Fields(message)
    within = fields.get("within", read_time_range)
    seconds = fields.get("seconds", read_number)
    match message.kind:
        case "samples":
            if within is None:
                raise FrameDamaged("a request for samples has no time range")
            selector = fields.get("selector", _selector)
            request: ShardRequest = SamplesRequest(
                selector, within, fields.count("max_series"), fields.count("max_samples"), read_hashes(message)
            )
        case "evaluate":
            fragment, partitions = fields.get("fragment", fragment_of_json), fields.count("partitions")
            if partitions == 0:
                raise FrameDamaged("a request to evaluate a fragment has no number of partitions")
            limits = (fields.count("max_series"), fields.count("max_samples"))
            request = EvaluateRequest(fragment, partitions, *limits, read_hashes(message))
        case "buckets":
            request = BucketsRequest(within, fields.count("limit"))
        case "series":
            selectors, limit = fields.get("selectors", _selectors), fields.count("limit")
            request = SeriesRequest(selectors, within, limit)
        case "label-names":
            selectors, limit = fields.get("selectors", _selectors), fields.count("limit")
            request = LabelNamesRequest(selectors, within, limit)
        case "label-values":
            label, selectors = fields.get("label", read_text), fields.get("selectors", _selectors)
            request = LabelValuesRequest(label, selectors, within, fields.count("limit"))
        case "series-hashes":
            request = SeriesHashesRequest(fields.get("selectors", _selectors), within, fields.count("limit"))
        case "key-page":
            within = fields.get("within", lambda value: TimeRange(*read_row(value, "ii")))
            bounds = (fields.get("first", _hash), fields.get("last", _hash))
            limit, is_newest, max_samples = fields.count("limit"), fields.flag("newest"), fields.count("max_samples")
            selectors = fields.get("selectors", _selectors)
            request = KeyPageRequest(selectors, within, *bounds, limit, is_newest, max_samples)
        case "cardinality":
            ranked = fields.get("label", lambda value: None if value is None else read_text(value))
            selectors, limit = fields.get("selectors", _selectors), fields.count("limit")
            (without,) = typed_columns(message.columns, "|u1")
            if len(without) % PART_ID_BYTES:
                raise FrameDamaged(f"a frame has {len(without)} bytes of part ids, not a multiple of {PART_ID_BYTES}")
            request = CardinalityRequest(
                selectors,
                within,
                limit,
                ranked,
                fields.count("listed_bytes"),
                without.tobytes(),
                fields.flag("samples"),
            )
        case _:
            raise FrameDamaged(f"a frame is of kind {message.kind!r}, which is not a request")
    return request, seconds


def _selector_json(selector: Selector) -> list[list[str]]:
    return [[matcher.label, matcher.op.value, matcher.value] for matcher in selector]


def _selectors(value: Any) -> tuple[Selector, ...]:
    return tuple(map(_selector, read_list(value)))


def _selector(value: Any) -> Selector:
    return tuple(map(_matcher, read_list(value)))


def _matcher(value: Any) -> Matcher:
    label, op, value = read_row(value, "sss")
    # The lookup is faster: a call of the enumeration takes as long as the rest.
    return Matcher(label, _OPERATORS[op] if op in _OPERATORS else MatchOp(op), value)


def _hash(value: Any) -> tuple[int, int]:
    low, high = np.array(read_row(value, "ii"), dtype=np.uint64).tolist()
    return low, high
