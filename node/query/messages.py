"""Each question, answer and error as a message, and back. What comes in is checked: bounds, types, and columns that fit
together, so that no kernel behind it reads past its end.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, TypeVar

import numpy as np

from strandline.arrays import I64s
from strandline.errors import Fatal, StrandlineError
from strandline.index.cardinality import LabelCardinality, ValueCardinality
from strandline.index.key_bytes import KeyBytes
from strandline.index.matchers import InvalidMatcher, Matcher, MatcherTooCostly, MatchOp
from strandline.index.pylucene.failures import InvalidRegex, RegexTooCostly
from strandline.index.selectors import InvalidSelector
from strandline.node.query.answers import (
    Answer,
    BucketsAnswer,
    CardinalityAnswer,
    EvaluateAnswer,
    KeyPageAnswer,
    LabelTerms,
    SamplesAnswer,
    SeriesAnswer,
    SeriesHashesAnswer,
    TermsAnswer,
)
from strandline.node.query.frames import FrameDamaged, Message
from strandline.node.query.kernels.soundness import first_unsound_key, lead_to
from strandline.node.query.partial_messages import partial_columns, partial_of
from strandline.node.query.queries import (
    QueryCancelled,
    QueryTimedOut,
    QueryTooLarge,
    QueryUnavailable,
    TooManySamples,
    TooManySeries,
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
from strandline.node.shard.bucket_report import BucketFigures
from strandline.promql.errors import EvaluationError
from strandline.promql.plan.fragment_codec import fragment_of_json, fragment_to_json
from strandline.time_range import TimeRange

Value = TypeVar("Value")
ERROR = "error"
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
_ERRORS: Mapping[str, type[StrandlineError]] = {
    kind.__name__: kind
    for kind in (
        QueryCancelled,
        QueryTimedOut,
        QueryTooLarge,
        TooManySeries,
        TooManySamples,
        QueryUnavailable,
        InvalidMatcher,
        InvalidSelector,
        InvalidRegex,
        MatcherTooCostly,
        RegexTooCostly,
        EvaluationError,
    )
}
# What an error has beside its message and remedy.
_EXTRAS = ("examined_terms", "elapsed_ms", "position", "found")


class QueryFailed(Fatal):
    """A shard failed at a question in a way that nothing here expects. Its log has more."""


def request_message(request: ShardRequest, seconds_left: float) -> Message:
    """A question, and how long the answer may take."""
    kind = next(name for name, cls in _REQUESTS.items() if isinstance(request, cls))
    fields: dict[str, Any] = {"seconds": seconds_left}
    columns: tuple[Any, ...] = ()
    for name in request.__slots__:
        value = getattr(request, name)
        match name:
            case "within":
                fields[name] = [value.first, value.last] if value is not None else None
            case "selectors":
                fields[name] = [_told(selector) for selector in value]
            case "selector":
                fields[name] = _told(value)
            case "without" | "only":
                columns = (np.frombuffer(value, dtype=np.uint8),)
            case "fragment":
                fields[name] = fragment_to_json(value)
            case _:
                fields[name] = value
    return Message(kind, fields, columns)


def request_of(message: Message) -> tuple[ShardRequest, float]:  # noqa: PLR0912 - one for each kind
    """The question of a message. Raises `FrameDamaged`, and `InvalidMatcher` for a matcher that is none."""
    fields = _Fields(message)
    within = fields.get("within", _time_range)
    seconds = fields.get("seconds", _number)
    match message.kind:
        case "samples":
            if within is None:
                raise FrameDamaged("a question for samples has no range of times")
            selector = fields.get("selector", _selector)
            request: ShardRequest = SamplesRequest(
                selector, within, fields.count("max_series"), fields.count("max_samples"), _hashes(message)
            )
        case "evaluate":
            fragment, partitions = fields.get("fragment", fragment_of_json), fields.count("partitions")
            if partitions == 0:
                raise FrameDamaged("a question for a fragment names no partitions")
            limits = (fields.count("max_series"), fields.count("max_samples"))
            request = EvaluateRequest(fragment, partitions, *limits, _hashes(message))
        case "buckets":
            request = BucketsRequest(within, fields.count("limit"))
        case "series":
            selectors, limit = fields.get("selectors", _selectors), fields.count("limit")
            request = SeriesRequest(selectors, within, limit)
        case "label-names":
            selectors, limit = fields.get("selectors", _selectors), fields.count("limit")
            request = LabelNamesRequest(selectors, within, limit)
        case "label-values":
            label, selectors = fields.get("label", _text), fields.get("selectors", _selectors)
            request = LabelValuesRequest(label, selectors, within, fields.count("limit"))
        case "series-hashes":
            request = SeriesHashesRequest(fields.get("selectors", _selectors), within, fields.count("limit"))
        case "key-page":
            within = fields.get("within", lambda told: TimeRange(*_row(told, "ii")))
            bounds = (fields.get("first", _hash), fields.get("last", _hash))
            limit, is_newest, most = fields.count("limit"), fields.flag("newest"), fields.count("max_samples")
            request = KeyPageRequest(fields.get("selectors", _selectors), within, *bounds, limit, is_newest, most)
        case "cardinality":
            ranked = fields.get("label", lambda told: None if told is None else _text(told))
            selectors, limit = fields.get("selectors", _selectors), fields.count("limit")
            (without,) = _typed(message.columns, "|u1")
            if len(without) % _PART_ID_BYTES:
                raise FrameDamaged(f"a frame has {len(without)} bytes of part ids")
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
            raise FrameDamaged(f"a frame asks for {message.kind!r}, which is no question")
    return request, seconds


def answer_message(answer: Answer) -> Message:  # noqa: PLR0911 - one for each kind
    """An answer."""
    told: dict[str, Any] = {"warnings": answer.warnings}
    match answer:
        case SeriesAnswer():
            return Message("series", told | {"more": answer.more}, (answer.keys.offsets, answer.keys.data))
        case TermsAnswer():
            told |= {"more": answer.more, "of_all": answer.of_all}
            return Message("terms", told, (answer.offsets, answer.data, answer.counts))
        case SamplesAnswer():
            columns = (answer.keys.offsets, answer.keys.data, answer.first_sample, answer.time, answer.value)
            return Message("samples", told, columns)
        case EvaluateAnswer():
            of_partial, state = partial_columns(answer.partial)
            misplaced = np.frombuffer(answer.misplaced, dtype=np.uint8)
            return Message("evaluated", told | of_partial | {"samples": answer.samples}, (misplaced, *state))
        case SeriesHashesAnswer():
            words = (answer.part_ids.view(np.uint8), answer.low.view(np.int64), answer.high.view(np.int64))
            return Message("series-hashes", told | {"series": answer.series}, words)
        case KeyPageAnswer():
            low, high = answer.low.view(np.int64), answer.high.view(np.int64)
            times = (answer.start, answer.end, answer.time)
            return Message(
                "key-page",
                told | {"more": answer.more},
                (answer.keys.offsets, answer.keys.data, low, high, *times, answer.value),
            )
        case CardinalityAnswer():
            tops = {name: [list(asdict(one).values()) for one in getattr(answer, name)] for name in _TOPS}
            labels = [[one.name, one.values, one.series, one.value_bytes] for one in answer.labels]
            fields = told | tops | {"series": answer.series, "labels": labels, "samples": answer.samples}
            return Message("cardinality", fields, _term_columns(answer.terms))
        case BucketsAnswer():
            return Message("buckets", told | {"buckets": [asdict(one) for one in answer.buckets]})


def answer_of(message: Message) -> Answer:  # noqa: PLR0911 - one for each kind
    """The answer of a message; raises what an error says, and `FrameDamaged`."""
    if message.kind == ERROR:
        raise error_of(message)
    fields, columns = _Fields(message), message.columns
    # An empty list is what most answers have.
    warnings = () if message.fields.get("warnings") == [] else fields.get("warnings", _texts)
    match message.kind:
        case "series":
            offsets, data = _typed(columns, "<i8", "|u1")
            return SeriesAnswer(_keys(offsets, data), fields.flag("more"), warnings)
        case "terms":
            offsets, data, counts = _typed(columns, "<i8", "|u1", "<i8")
            _check_offsets(offsets, len(data))
            if len(counts) != len(offsets) - 1:
                raise FrameDamaged(f"{len(offsets) - 1} terms came with {len(counts)} counts")
            return TermsAnswer(offsets, data, counts, fields.flag("more"), warnings, fields.flag("of_all"))
        case "samples":
            offsets, data, first, time, value = _typed(columns, "<i8", "|u1", "<i8", "<i8", "<f8")
            _check_offsets(first, len(time))
            if len(first) != len(offsets) or len(time) != len(value):
                raise FrameDamaged(f"{len(offsets) - 1} keys came with {len(first) - 1} series of samples")
            return SamplesAnswer(_keys(offsets, data), first, time, value, warnings)
        case "evaluated":
            return _evaluated(fields, message, warnings)
        case "series-hashes":
            ids, low, high = _typed(columns, "|u1", "<i8", "<i8")
            if len(ids) != _PART_ID_BYTES * len(low) or len(low) != len(high) or len(low) > fields.count("series"):
                raise FrameDamaged(f"{len(ids)} bytes of part ids came with {len(low)} and {len(high)} words of hashes")
            words = (ids.view(np.uint32), low.view(np.uint64), high.view(np.uint64))
            return SeriesHashesAnswer(fields.count("series"), *words, warnings)
        case "key-page":
            return _key_page(columns, fields.flag("more"), warnings)
        case "cardinality":
            pairs, metrics, values = (fields.get(name, _values) for name in _TOPS)
            labels = fields.get("labels", lambda told: tuple(LabelCardinality(*_row(one, "siii")) for one in told))
            terms = _label_terms(columns, len(labels)) if columns else None
            samples = fields.get("samples", lambda told: None if told is None else _count(told))
            figures = (fields.count("series"), labels, pairs, metrics, values, terms)
            return CardinalityAnswer(*figures, samples=samples, warnings=warnings)
        case "buckets":
            return BucketsAnswer(fields.get("buckets", _buckets), warnings)
    raise FrameDamaged(f"a frame answers with {message.kind!r}, which is no answer")


def error_message(error: Exception) -> Message:
    """An error. One that the other side need not know becomes `QueryFailed` there."""
    kind = type(error)
    if not isinstance(error, StrandlineError):
        return Message(ERROR, {"type": "", "message": f"the shard failed with {kind.__name__}", "remedy": ""})
    extras = {name: getattr(error, name) for name in _EXTRAS if hasattr(error, name)}
    return Message(ERROR, {"type": kind.__name__, "message": error.message, "remedy": error.remedy} | extras)


def error_of(message: Message) -> StrandlineError:
    """The error of a message, of the same type."""
    fields = _Fields(message)
    kind = _ERRORS.get(fields.get("type", _text), QueryFailed)
    error = kind.__new__(kind)
    # Past constructors of their own, which would put words around a message that has them already.
    StrandlineError.__init__(error, fields.get("message", _text), remedy=fields.get("remedy", _text))
    for name in _EXTRAS:
        if name in message.fields:
            setattr(error, name, fields.count(name))
    return error


# Part ids cross the link as bytes: there are no columns of four bytes.
_PART_ID_BYTES = 4
_HASH_BYTES = 16
_OPERATORS: Mapping[str, MatchOp] = {op.value: op for op in MatchOp}
_TOPS = ("top_pairs_by_series", "top_metrics_by_series", "top_values_by_series")


class _Fields:
    """The fields of a message, each of its type or `FrameDamaged`."""

    def __init__(self, message: Message) -> None:
        self._message = message

    def get(self, name: str, reads: Callable[[Any], Value]) -> Value:
        try:
            return reads(self._message.fields.get(name))
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            raise FrameDamaged(f"a frame of kind {self._message.kind!r} has no sound {name}: {error}") from error

    def count(self, name: str) -> int:
        return self.get(name, _count)

    def flag(self, name: str) -> bool:
        told = self._message.fields.get(name)
        return told if told is True or told is False else self.get(name, _flag)


def _told(selector: Selector) -> list[list[str]]:
    return [[matcher.label, matcher.op.value, matcher.value] for matcher in selector]


def _selectors(told: Any) -> tuple[Selector, ...]:
    return tuple(map(_selector, _list(told)))


def _selector(told: Any) -> Selector:
    return tuple(map(_matcher, _list(told)))


def _matcher(told: Any) -> Matcher:
    label, op, value = _row(told, "sss")
    # Looked up: calling the enumeration takes as long as the rest.
    return Matcher(label, _OPERATORS[op] if op in _OPERATORS else MatchOp(op), value)


def _values(told: Any) -> tuple[ValueCardinality, ...]:
    return tuple(ValueCardinality(*_row(one, "ssi")) for one in _list(told))


def _buckets(told: Any) -> tuple[BucketFigures, ...]:
    found = tuple(BucketFigures(**one) for one in _list(told))
    for one in found:
        _row(list(asdict(one).values()), "iiiiiiiisi")
    return found


def _hash(told: Any) -> tuple[int, int]:
    low, high = np.array(_row(told, "ii"), dtype=np.uint64).tolist()
    return low, high


def _time_range(told: Any) -> TimeRange | None:
    return None if told is None else TimeRange(*_row(told, "ii"))


def _row(told: Any, kinds: str) -> list[Any]:
    if not isinstance(told, list) or len(told) != len(kinds):
        raise ValueError(f"{told!r} is no list of {len(kinds)}")
    wanted = _types(kinds)
    if tuple(map(type, told)) != wanted:
        wrong = next(one for one, kind in zip(told, wanted, strict=True) if type(one) is not kind)
        raise TypeError(f"{wrong!r} is of another type")
    return told


@cache
def _types(kinds: str) -> tuple[type, ...]:
    return tuple({"s": str, "i": int}[kind] for kind in kinds)


def _list(told: Any) -> list[Any]:
    if not isinstance(told, list):
        raise TypeError(f"{told!r} is no list")
    return told


def _text(told: Any) -> str:
    if not isinstance(told, str):
        raise TypeError(f"{told!r} is no text")
    return told


def _texts(told: Any) -> tuple[str, ...]:
    return tuple(map(_text, _list(told)))


def _flag(told: Any) -> bool:
    raise TypeError(f"{told!r} is neither true nor false")


def _count(told: Any) -> int:
    if type(told) is not int or told < 0:
        raise ValueError(f"{told!r} is no count")
    return told


def _number(told: Any) -> float:
    if type(told) not in (int, float) or not told >= 0:
        raise ValueError(f"{told!r} is no number of seconds")
    return float(told)


def _typed(columns: Sequence[Any], *kinds: str) -> Sequence[Any]:
    if [column.dtype.str for column in columns] != list(kinds):
        raise FrameDamaged(f"a frame has columns of {[column.dtype.str for column in columns]}, not of {list(kinds)}")
    return columns


def _hashes(message: Message) -> bytes:
    (column,) = _typed(message.columns, "|u1")
    if len(column) % _HASH_BYTES:
        raise FrameDamaged(f"a frame has {len(column)} bytes of hashes")
    hashes: bytes = column.tobytes()
    return hashes


def _evaluated(fields: "_Fields", message: Message, warnings: tuple[str, ...]) -> EvaluateAnswer:
    columns = message.columns
    if not columns or columns[0].dtype.str != "|u1" or len(columns[0]) % _HASH_BYTES:
        raise FrameDamaged("a partial result came without the hashes of misplaced series")
    # All of its fields are read together: they make sense only together.
    partial = fields.get("result", lambda _: partial_of(message.fields, columns[1:], _keys))
    return EvaluateAnswer(partial, columns[0].tobytes(), fields.count("samples"), warnings)


def _key_page(columns: Sequence[Any], more: bool, warnings: tuple[str, ...]) -> KeyPageAnswer:
    offsets, data, low, high, start, end, time, value = _typed(columns, "<i8", "|u1", *5 * ("<i8",), "<f8")
    keys = _keys(offsets, data)
    if any(len(column) != len(keys) for column in (low, high, start, end, time, value)):
        raise FrameDamaged(f"{len(keys)} keys of a page came with columns of other lengths")
    return KeyPageAnswer(keys, low.view(np.uint64), high.view(np.uint64), start, end, time, value, more, warnings)


def _term_columns(terms: LabelTerms | None) -> tuple[Any, ...]:
    if terms is None:
        return ()
    words = terms.hashes.view(np.int64)
    return (terms.first_term, terms.offsets, terms.data, terms.counts, terms.first_hash, words)


def _label_terms(columns: Sequence[Any], labels: int) -> LabelTerms:
    first_term, offsets, data, counts, first_hash, hashes = _typed(columns, "<i8", "<i8", "|u1", "<i8", "<i8", "<i8")
    _check_offsets(offsets, len(data))
    _check_offsets(first_term, len(counts))
    _check_offsets(first_hash, len(hashes))
    if not len(first_term) == len(first_hash) == labels + 1 or len(counts) != len(offsets) - 1:
        raise FrameDamaged(f"{labels} labels came with terms of {len(first_term) - 1}, {len(counts)} of them counted")
    return LabelTerms(first_term, offsets, data, counts, first_hash, hashes.view(np.uint64))


def _check_offsets(offsets: I64s, behind: int) -> None:
    if not lead_to(offsets, behind):
        raise FrameDamaged(f"a frame's offsets do not lead from 0 to {behind}")


def _keys(offsets: I64s, data: Any) -> KeyBytes:
    _check_offsets(offsets, len(data))
    if (place := first_unsound_key(data, offsets)) >= 0:
        raise FrameDamaged(f"key {place} of a frame is no part key")
    return KeyBytes(offsets, data)
