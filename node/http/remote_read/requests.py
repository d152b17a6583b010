"""The request: a snappy block that holds a `ReadRequest`, of whose messages this is what counts here.

    ReadRequest  { repeated Query queries = 1; repeated ResponseType accepted_response_types = 2; }
    Query        { int64 start_timestamp_ms = 1; int64 end_timestamp_ms = 2;
                   repeated LabelMatcher matchers = 3; ReadHints hints = 4; }
    LabelMatcher { Type type = 1; string name = 2; string value = 3; }
    ReadHints    { ... string func = 2; ... }

Hints say what the samples are wanted for, and may be ignored. One is not: for the function `series` Prometheus wants
the series' labels only, and no sample is read for it.
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
    """The forms of answer that there are, by their numbers in the protocol."""

    SAMPLES = 0
    STREAMED_XOR_CHUNKS = 1


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """One selector and the times that it is asked for, both included; `labels_only` if no sample is wanted."""

    matchers: tuple[Matcher, ...]
    within: TimeRange
    labels_only: bool = False


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What a client asks, and the form of answer that it prefers of those that we have."""

    queries: tuple[ReadQuery, ...]
    response_type: ResponseType


def decode_request(body: bytes) -> ReadRequest:
    """Read a request's body. Raises `BadMessage`, which says what is wrong with it."""
    try:
        message = decompress(body, limit=MAX_UNPACKED)
    except BadBlock as error:
        raise BadMessage(f"the read request can't be unpacked: {error.message}") from error
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
    """The first form in a client's list that we have; plain samples for a client that names none, as old ones do."""
    if not accepted:
        return ResponseType.SAMPLES
    for number in accepted:
        if number in set(ResponseType):
            return ResponseType(number)
    known = ", ".join(f"{kind.name} ({kind:d})" for kind in ResponseType)
    raise BadMessage(
        f"none of the accepted response types {', '.join(map(str, accepted))} is supported", remedy=f"There are {known}"
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
        raise BadMessage(f"a matcher with the value {value!r:.200} names no label")
    return Matcher(label, _OPERATORS[kind], value)


def _function(hints: Field, budget: FieldBudget) -> str:
    function = ""
    for field in read_fields(hints.as_bytes(), "ReadHints", budget):
        if field.number == 2:
            function = field.as_text()
    return function
