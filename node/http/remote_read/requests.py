"""Decodes a read request: a snappy block with a `ReadRequest`. The fields that are used:

    ReadRequest  { repeated Query queries = 1; repeated ResponseType accepted_response_types = 2; }
    Query        { int64 start_timestamp_ms = 1; int64 end_timestamp_ms = 2;
                   repeated LabelMatcher matchers = 3; ReadHints hints = 4; }
    LabelMatcher { Type type = 1; string name = 2; string value = 3; }
    ReadHints    { ... string func = 2; ... }

Hints describe how the samples will be used, and may be ignored, with one exception: for the function `series`,
Prometheus needs the labels only, and no samples are read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from strandline.index.matchers import Matcher, MatchOp
from strandline.node.http.remote_read.fields import BadMessage, Field, FieldBudget, read_fields
from strandline.time_range import TimeRange
from strandline.wire.snappy import BadBlock, decompress

MAX_UNPACKED = 4 << 20
MAX_QUERIES = 64
MAX_MATCHERS = 1000  # Of all queries together.
MAX_RESPONSE_TYPES = 16
MAX_FIELDS = 20_000

_OPERATORS = (MatchOp.EQUAL, MatchOp.NOT_EQUAL, MatchOp.MATCH, MatchOp.NOT_MATCH)
_LABELS_ONLY = "series"


class ResponseType(IntEnum):
    """The response types of the protocol, with their numbers."""

    SAMPLES = 0
    STREAMED_XOR_CHUNKS = 1


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """A selector with its time range, including both ends. `labels_only`: without samples."""

    matchers: tuple[Matcher, ...]
    within: TimeRange
    labels_only: bool = False


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The queries of a request, and the client's preferred response type among the supported ones."""

    queries: tuple[ReadQuery, ...]
    response_type: ResponseType


def decode_request(body: bytes) -> ReadRequest:
    """Decode a request's body. Raises `BadMessage`, with the reason."""
    try:
        message = decompress(body, limit=MAX_UNPACKED)
    except BadBlock as error:
        raise BadMessage(f"the read request can't be decompressed: {error.message}") from error
    budget = FieldBudget(MAX_FIELDS)
    queries: list[ReadQuery] = []
    accepted: list[int] = []
    matchers = 0
    for field in read_fields(message, "ReadRequest", budget):
        if field.number == 1:
            queries.append(_query(field, budget))
            matchers += len(queries[-1].matchers)
        elif field.number == 2:
            accepted += field.as_numbers(budget)
        for count, limit, what in (
            (len(queries), MAX_QUERIES, "queries"),
            (matchers, MAX_MATCHERS, "matchers"),
            (len(accepted), MAX_RESPONSE_TYPES, "accepted response types"),
        ):
            if count > limit:
                raise BadMessage(
                    f"the read request has {count} {what}, over the limit of {limit}", remedy="Send several requests"
                )
    return ReadRequest(tuple(queries), preferred(accepted))


def preferred(accepted: Sequence[int]) -> ResponseType:
    """The first supported response type of a client's list; SAMPLES for a client without a list, as old ones are."""
    if not accepted:
        return ResponseType.SAMPLES
    for number in accepted:
        if number in set(ResponseType):
            return ResponseType(number)
    known = ", ".join(f"{kind.name} ({kind:d})" for kind in ResponseType)
    raise BadMessage(
        f"none of the accepted response types {', '.join(map(str, accepted))} is supported",
        remedy=f"Supported are {known}",
    )


def _query(query: Field, budget: FieldBudget) -> ReadQuery:
    start = end = 0
    matchers: list[Matcher] = []
    labels_only = False
    for field in read_fields(query.as_bytes(), "Query", budget):
        match field.number:
            case 1:
                start = field.as_int64()
            case 2:
                end = field.as_int64()
            case 3:
                matchers.append(_matcher(field, budget))
            case 4:
                labels_only = _function(field, budget) == _LABELS_ONLY
    return ReadQuery(tuple(matchers), TimeRange(start, end), labels_only)


def _matcher(matcher: Field, budget: FieldBudget) -> Matcher:
    kind, label, value = 0, "", ""
    for field in read_fields(matcher.as_bytes(), "LabelMatcher", budget):
        match field.number:
            case 1:
                kind = field.as_uint64()
            case 2:
                label = field.as_text()
            case 3:
                value = field.as_text()
    if kind >= len(_OPERATORS):
        raise BadMessage(f"a matcher of the label {label!r:.200} has the type {kind}; there are 0 to 3 (=, !=, =~, !~)")
    if not label:
        raise BadMessage(f"a matcher with the value {value!r:.200} has no label")
    return Matcher(label, _OPERATORS[kind], value)


def _function(hints: Field, budget: FieldBudget) -> str:
    function = ""
    for field in read_fields(hints.as_bytes(), "ReadHints", budget):
        if field.number == 2:
            function = field.as_text()
    return function
