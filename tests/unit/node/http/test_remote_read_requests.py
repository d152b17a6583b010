"""Decoding of valid and hostile requests."""

import contextlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.matchers import Matcher, MatchOp
from strandline.node.http.remote_read.fields import BadMessage
from strandline.node.http.remote_read.requests import (
    MAX_FIELDS,
    MAX_MATCHERS,
    MAX_QUERIES,
    MAX_UNPACKED,
    ReadQuery,
    ReadRequest,
    ResponseType,
    decode_request,
)
from strandline.time_range import TimeRange
from support.remote_read import LabelMatcher, Query, ReadHints, packed_request

pytestmark = pytest.mark.unit

OPERATORS = (MatchOp.EQUAL, MatchOp.NOT_EQUAL, MatchOp.MATCH, MatchOp.NOT_MATCH)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
MATCHERS = st.builds(Matcher, TEXT.filter(bool), st.sampled_from(OPERATORS), TEXT)
QUERIES = st.builds(
    ReadQuery, st.lists(MATCHERS, max_size=4).map(tuple), st.builds(TimeRange, INT64, INT64), st.booleans()
)


def packed(message: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(message))


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def as_message(query: ReadQuery) -> object:
    return Query(
        start_timestamp_ms=query.within.first,
        end_timestamp_ms=query.within.last,
        matchers=[
            LabelMatcher(type=OPERATORS.index(matcher.op), name=matcher.label, value=matcher.value)
            for matcher in query.matchers
        ],
        hints=ReadHints(step_ms=-1, func="series" if query.labels_only else "rate", start_ms=1),
    )


@given(st.lists(QUERIES, max_size=3))
def test_requests_of_the_official_implementation_are_decoded(queries: list[ReadQuery]) -> None:
    body = packed_request([as_message(query) for query in queries], [1, 0])
    assert decode_request(body) == ReadRequest(tuple(queries), ResponseType.STREAMED_XOR_CHUNKS)


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        ([], ResponseType.SAMPLES),
        ([0], ResponseType.SAMPLES),
        ([1], ResponseType.STREAMED_XOR_CHUNKS),
        ([0, 1], ResponseType.SAMPLES),
        ([1, 0], ResponseType.STREAMED_XOR_CHUNKS),
        ([7, 1, 0], ResponseType.STREAMED_XOR_CHUNKS),
    ],
)
def test_the_first_supported_response_type_is_chosen(accepted: list[int], chosen: ResponseType) -> None:
    assert decode_request(packed_request([], accepted)).response_type is chosen
    unpacked = b"".join(bytes([0x10, number]) for number in accepted)
    assert decode_request(packed(unpacked)).response_type is chosen


def test_without_a_supported_response_type_the_error_names_the_supported_ones() -> None:
    with pytest.raises(BadMessage, match=r"types 7, 9 is supported.*STREAMED_XOR_CHUNKS \(1\)"):
        decode_request(packed_request([], [7, 9]))


def test_unknown_fields_are_skipped() -> None:
    unknown = b"\x78\x01" + field(12, b"x") + b"\x79" + bytes(8) + b"\x7d" + bytes(4)
    matcher = unknown + field(2, b"a") + unknown + field(3, b"b") + unknown
    query = unknown + field(3, matcher) + unknown + b"\x08\x05\x10\x07"
    assert len(query) < 128
    expected = ReadQuery((Matcher("a", MatchOp.EQUAL, "b"),), TimeRange(5, 7))
    assert decode_request(packed(unknown + field(1, query) + unknown)).queries == (expected,)


def test_of_a_repeated_field_the_last_counts() -> None:
    assert decode_request(packed(field(1, b"\x08\x05\x08\x06"))).queries[0].within.first == 6


def matcher_in_a_query(matcher: bytes) -> bytes:
    return packed(field(1, field(3, matcher)))


HOSTILE = {
    "nothing": (b"", "no valid length"),
    "no snappy": (b"\x0a\xff\xff\xff\xff\xff\xff", "damaged"),
    "a bomb": (b"\xff\xff\xff\xff\x0f" + bytes(10), "over the limit"),
    "cut off in a tag": (packed(b"\x8a"), "number at byte 0"),
    "cut off in a length": (packed(b"\x0a\x80"), "number at byte 1"),
    "cut off in a field": (packed(b"\x0a\x05abc"), "field 1 of a ReadRequest is cut off: 3 of 5"),
    "a length past all memory": (packed(b"\x0a" + b"\xff" * 9 + b"\x01"), "cut off"),
    "a number of eleven bytes": (packed(b"\x10" + b"\x80" * 10 + b"\x01"), "longer than 10"),
    "a field without a number": (packed(b"\x00\x00"), "number 0"),
    "a group": (packed(b"\x0b\x0c"), "wire type 3"),
    "a fixed number that is cut off": (packed(b"\x79abc"), "cut off: 3 of 8"),
    "queries that are numbers": (packed(b"\x08\x01"), "field 1 of a ReadRequest is not bytes"),
    "queries that are fixed numbers": (packed(b"\x09" + bytes(8)), "field 1 of a ReadRequest is not bytes"),
    "a time that is text": (packed(field(1, field(1, b"x"))), "field 1 of a Query is not a number"),
    "hints that are a number": (packed(field(1, b"\x20\x01")), "field 4 of a Query is not bytes"),
    "a name that is not UTF-8": (matcher_in_a_query(field(2, b"\xff")), "field 2 of a LabelMatcher is not UTF-8"),
    "half a surrogate pair": (matcher_in_a_query(field(2, b"\xed\xa0\x80")), "not UTF-8"),
    "a matcher of an unknown type": (matcher_in_a_query(b"\x08\x04" + field(2, b"job")), "'job' has the type 4"),
    "a matcher of a negative type": (matcher_in_a_query(b"\x08" + b"\xff" * 9 + b"\x01" + field(2, b"a")), "type 1844"),
    "a matcher without a label": (matcher_in_a_query(field(3, b"v")), "'v' has no label"),
    "many queries": (packed(field(1, b"") * (MAX_QUERIES + 1)), f"queries, over the limit of {MAX_QUERIES}"),
    "many matchers": (
        packed_request([Query(matchers=[LabelMatcher(name="a")] * (MAX_MATCHERS // 2 + 1))] * 2),
        f"matchers, over the limit of {MAX_MATCHERS}",
    ),
    "many forms of answer": (packed_request([], [0] * 17), "17 accepted response types"),
    "very many forms of answer": (packed_request([], [0] * (MAX_FIELDS + 1)), "too many fields"),
    "many unknown fields": (packed(b"\x78\x01" * (MAX_FIELDS + 1)), "too many fields"),
    "many unknown fields inside": (
        packed_request([Query.FromString(b"\x78\x01" * (MAX_FIELDS + 1))]),
        "too many fields",
    ),
    "too much": (packed(bytes(MAX_UNPACKED + 1)), f"over the limit of {MAX_UNPACKED}"),
}


@pytest.mark.parametrize(("body", "reason"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_broken_request_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(BadMessage) as refused:
        decode_request(body)
    assert reason in str(refused.value)
    assert refused.value.status == 400


@given(st.binary(max_size=200))
def test_random_bytes_are_decoded_or_refused_with_a_reason(message: bytes) -> None:
    with contextlib.suppress(BadMessage):
        decode_request(packed(message))
    with contextlib.suppress(BadMessage):
        decode_request(message)


@given(QUERIES, st.data())
def test_damaged_requests_are_decoded_or_refused_with_a_reason(query: ReadQuery, data: st.DataObject) -> None:
    message = bytearray(cramjam.snappy.decompress_raw(packed_request([as_message(query)], [1])))
    for place in data.draw(st.lists(st.integers(0, len(message) - 1), min_size=1, max_size=3)):
        message[place] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BadMessage):
        decode_request(packed(bytes(message)))
