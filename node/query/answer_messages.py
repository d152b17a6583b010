"""Answers and errors as messages, and back. Columns are checked for fitting together, so that no kernel reads past
their end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from strandline.arrays import I64s
from strandline.errors import Fatal, StrandlineError
from strandline.index.cardinality import LabelCardinality, ValueCardinality
from strandline.index.key_bytes import KeyBytes
from strandline.index.matchers import InvalidMatcher, MatcherTooCostly
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
from strandline.node.query.kernels.validation import are_offsets, first_invalid_key
from strandline.node.query.message_fields import (
    HASH_BYTES,
    PART_ID_BYTES,
    Fields,
    read_count,
    read_list,
    read_row,
    read_text,
    read_texts,
    typed_columns,
)
from strandline.node.query.partial_messages import partial_columns, partial_of
from strandline.node.query.queries import (
    QueryCancelled,
    QueryTimedOut,
    QueryTooLarge,
    QueryUnavailable,
    TooManySamples,
    TooManySeries,
)
from strandline.node.shard.bucket_report import BucketFigures
from strandline.promql.errors import EvaluationError

ERROR = "error"
_TOPS = ("top_pairs_by_series", "top_metrics_by_series", "top_values_by_series")
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
# Attributes of errors besides message and remedy.
_EXTRAS = ("examined_terms", "elapsed_ms", "position", "found")


class QueryFailed(Fatal):
    """A shard failed unexpectedly to answer a request. Its log has the details."""


def answer_message(answer: Answer) -> Message:  # noqa: PLR0911 - one for each kind
    """An answer as a message."""
    fields: dict[str, Any] = {"warnings": answer.warnings}
    match answer:
        case SeriesAnswer():
            return Message("series", fields | {"more": answer.more}, (answer.keys.offsets, answer.keys.data))
        case TermsAnswer():
            fields |= {"more": answer.more, "of_all": answer.of_all}
            return Message("terms", fields, (answer.offsets, answer.data, answer.counts))
        case SamplesAnswer():
            columns = (answer.keys.offsets, answer.keys.data, answer.first_sample, answer.time, answer.value)
            return Message("samples", fields, columns)
        case EvaluateAnswer():
            of_partial, state = partial_columns(answer.partial)
            misplaced = np.frombuffer(answer.misplaced, dtype=np.uint8)
            return Message("evaluated", fields | of_partial | {"samples": answer.samples}, (misplaced, *state))
        case SeriesHashesAnswer():
            words = (answer.part_ids.view(np.uint8), answer.low.view(np.int64), answer.high.view(np.int64))
            return Message("series-hashes", fields | {"series": answer.series}, words)
        case KeyPageAnswer():
            low, high = answer.low.view(np.int64), answer.high.view(np.int64)
            times = (answer.start, answer.end, answer.time)
            return Message(
                "key-page",
                fields | {"more": answer.more},
                (answer.keys.offsets, answer.keys.data, low, high, *times, answer.value),
            )
        case CardinalityAnswer():
            tops = {name: [list(asdict(one).values()) for one in getattr(answer, name)] for name in _TOPS}
            labels = [[one.name, one.values, one.series, one.value_bytes] for one in answer.labels]
            figures = fields | tops | {"series": answer.series, "labels": labels, "samples": answer.samples}
            return Message("cardinality", figures, _term_columns(answer.terms))
        case BucketsAnswer():
            return Message("buckets", fields | {"buckets": [asdict(one) for one in answer.buckets]})


def answer_of(message: Message) -> Answer:  # noqa: PLR0911 - one for each kind
    """The answer of a message. Raises the error if the message is one, and `FrameDamaged`."""
    if message.kind == ERROR:
        raise error_of(message)
    fields, columns = Fields(message), message.columns
    # Most answers have no warnings.
    warnings = () if message.fields.get("warnings") == [] else fields.get("warnings", read_texts)
    match message.kind:
        case "series":
            offsets, data = typed_columns(columns, "<i8", "|u1")
            return SeriesAnswer(_keys(offsets, data), fields.flag("more"), warnings)
        case "terms":
            offsets, data, counts = typed_columns(columns, "<i8", "|u1", "<i8")
            _check_offsets(offsets, len(data))
            if len(counts) != len(offsets) - 1:
                raise FrameDamaged(f"{len(offsets) - 1} terms have {len(counts)} counts")
            return TermsAnswer(offsets, data, counts, fields.flag("more"), warnings, fields.flag("of_all"))
        case "samples":
            offsets, data, first, time, value = typed_columns(columns, "<i8", "|u1", "<i8", "<i8", "<f8")
            _check_offsets(first, len(time))
            if len(first) != len(offsets) or len(time) != len(value):
                raise FrameDamaged(f"{len(offsets) - 1} keys have samples of {len(first) - 1} series")
            return SamplesAnswer(_keys(offsets, data), first, time, value, warnings)
        case "evaluated":
            return _evaluated(fields, message, warnings)
        case "series-hashes":
            ids, low, high = typed_columns(columns, "|u1", "<i8", "<i8")
            if len(ids) != PART_ID_BYTES * len(low) or len(low) != len(high) or len(low) > fields.count("series"):
                raise FrameDamaged(f"{len(ids)} bytes of part ids have {len(low)} and {len(high)} words of hashes")
            words = (ids.view(np.uint32), low.view(np.uint64), high.view(np.uint64))
            return SeriesHashesAnswer(fields.count("series"), *words, warnings)
        case "key-page":
            return _key_page(columns, fields.flag("more"), warnings)
        case "cardinality":
            pairs, metrics, values = (fields.get(name, _values) for name in _TOPS)
            labels = fields.get(
                "labels", lambda value: tuple(LabelCardinality(*read_row(one, "siii")) for one in value)
            )
            terms = _label_terms(columns, len(labels)) if columns else None
            samples = fields.get("samples", lambda value: None if value is None else read_count(value))
            figures = (fields.count("series"), labels, pairs, metrics, values, terms)
            return CardinalityAnswer(*figures, samples=samples, warnings=warnings)
        case "buckets":
            return BucketsAnswer(fields.get("buckets", _buckets), warnings)
    raise FrameDamaged(f"a frame is of kind {message.kind!r}, which is not an answer")


def error_message(error: Exception) -> Message:
    """An error as a message. An error of a type that is not in `_ERRORS` becomes `QueryFailed` in the front."""
    kind = type(error)
    if not isinstance(error, StrandlineError):
        return Message(ERROR, {"type": "", "message": f"the shard failed with {kind.__name__}", "remedy": ""})
    extras = {name: getattr(error, name) for name in _EXTRAS if hasattr(error, name)}
    return Message(ERROR, {"type": kind.__name__, "message": error.message, "remedy": error.remedy} | extras)


def error_of(message: Message) -> StrandlineError:
    """The error of a message, with the same type."""
    fields = Fields(message)
    kind = _ERRORS.get(fields.get("type", read_text), QueryFailed)
    error = kind.__new__(kind)
    # The constructors of these types would build the message again from its parts.
    StrandlineError.__init__(error, fields.get("message", read_text), remedy=fields.get("remedy", read_text))
    for name in _EXTRAS:
        if name in message.fields:
            setattr(error, name, fields.count(name))
    return error


def _values(value: Any) -> tuple[ValueCardinality, ...]:
    return tuple(ValueCardinality(*read_row(one, "ssi")) for one in read_list(value))


def _buckets(value: Any) -> tuple[BucketFigures, ...]:
    found = tuple(BucketFigures(**one) for one in read_list(value))
    for one in found:
        read_row(list(asdict(one).values()), "iiiiiiiisi")
    return found


def _evaluated(fields: Fields, message: Message, warnings: tuple[str, ...]) -> EvaluateAnswer:
    columns = message.columns
    if not columns or columns[0].dtype.str != "|u1" or len(columns[0]) % HASH_BYTES:
        raise FrameDamaged("a partial result has no hashes of misplaced series")
    # All fields are read at once, because they depend on each other.
    partial = fields.get("result", lambda _: partial_of(message.fields, columns[1:], _keys))
    return EvaluateAnswer(partial, columns[0].tobytes(), fields.count("samples"), warnings)


def _key_page(columns: Sequence[Any], more: bool, warnings: tuple[str, ...]) -> KeyPageAnswer:
    offsets, data, low, high, start, end, time, value = typed_columns(columns, "<i8", "|u1", *5 * ("<i8",), "<f8")
    keys = _keys(offsets, data)
    if any(len(column) != len(keys) for column in (low, high, start, end, time, value)):
        raise FrameDamaged(f"{len(keys)} keys of a page have columns of other lengths")
    return KeyPageAnswer(keys, low.view(np.uint64), high.view(np.uint64), start, end, time, value, more, warnings)


def _term_columns(terms: LabelTerms | None) -> tuple[Any, ...]:
    if terms is None:
        return ()
    words = terms.hashes.view(np.int64)
    return (terms.first_term, terms.offsets, terms.data, terms.counts, terms.first_hash, words)


def _label_terms(columns: Sequence[Any], labels: int) -> LabelTerms:
    first_term, offsets, data, counts, first_hash, hashes = typed_columns(
        columns, "<i8", "<i8", "|u1", "<i8", "<i8", "<i8"
    )
    _check_offsets(offsets, len(data))
    _check_offsets(first_term, len(counts))
    _check_offsets(first_hash, len(hashes))
    if not len(first_term) == len(first_hash) == labels + 1 or len(counts) != len(offsets) - 1:
        raise FrameDamaged(f"{labels} labels have terms of {len(first_term) - 1} labels, and {len(counts)} counts")
    return LabelTerms(first_term, offsets, data, counts, first_hash, hashes.view(np.uint64))


def _check_offsets(offsets: I64s, end: int) -> None:
    if not are_offsets(offsets, end):
        raise FrameDamaged(f"a frame's offsets do not ascend from 0 to {end}")


def _keys(offsets: I64s, data: Any) -> KeyBytes:
    _check_offsets(offsets, len(data))
    if (key := first_invalid_key(data, offsets)) >= 0:
        raise FrameDamaged(f"key {key} of a frame is not a part key")
    return KeyBytes(offsets, data)
