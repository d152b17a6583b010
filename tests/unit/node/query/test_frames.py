"""Requests, answers and errors on the link, and invalid bytes."""

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from strandline.errors import StrandlineError
from strandline.index.cardinality import LabelCardinality, ValueCardinality
from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.index.matchers import InvalidMatcher, Matcher, MatcherTooCostly, MatchOp
from strandline.index.pylucene.failures import RegexTooCostly
from strandline.index.selectors import InvalidSelector
from strandline.node.query.answer_messages import QueryFailed, answer_message, answer_of, error_message
from strandline.node.query.answers import (
    Answer,
    BucketsAnswer,
    CardinalityAnswer,
    KeyPageAnswer,
    LabelTerms,
    SamplesAnswer,
    SeriesAnswer,
    SeriesHashesAnswer,
    TermsAnswer,
)
from strandline.node.query.frames import (
    PREFIX,
    VERSION,
    FrameDamaged,
    Message,
    decode,
    decode_frame,
    encode,
    encode_joined,
    lengths_of,
)
from strandline.node.query.queries import QueryTooLarge, QueryUnavailable, TooManySamples, TooManySeries
from strandline.node.query.request_messages import request_message, request_of
from strandline.node.query.shard_requests import (
    BucketsRequest,
    CardinalityRequest,
    KeyPageRequest,
    LabelNamesRequest,
    LabelValuesRequest,
    SamplesRequest,
    SeriesHashesRequest,
    SeriesRequest,
    ShardRequest,
)
from strandline.node.shard.bucket_report import BucketFigures
from strandline.store.protocol import StoreUnavailable
from strandline.time_range import TimeRange

pytestmark = pytest.mark.unit

TEXTS = st.text(max_size=6)
TIMES = st.integers(-(2**63), 2**63 - 1)
RANGES = st.builds(TimeRange, TIMES, TIMES)
COUNTS = st.integers(0, 2**62)
SELECTORS = st.lists(st.builds(Matcher, TEXTS, st.sampled_from(MatchOp), TEXTS), max_size=3).map(tuple)
SEVERAL = st.lists(SELECTORS, max_size=3).map(tuple)
MAYBE = st.none() | RANGES
PART_IDS = st.lists(st.integers(0, 2**32 - 1), max_size=3).map(lambda ids: np.array(ids, dtype="<u4").tobytes())
HASHES = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
REQUESTS: st.SearchStrategy[ShardRequest] = st.one_of(
    st.builds(SeriesRequest, SEVERAL, MAYBE, COUNTS),
    st.builds(LabelNamesRequest, SEVERAL, MAYBE, COUNTS),
    st.builds(LabelValuesRequest, TEXTS, SEVERAL, MAYBE, COUNTS),
    st.builds(SamplesRequest, SELECTORS, RANGES, COUNTS, COUNTS),
    st.builds(SeriesHashesRequest, SEVERAL, MAYBE, COUNTS),
    st.builds(KeyPageRequest, SEVERAL, RANGES, HASHES, HASHES, COUNTS, st.booleans(), COUNTS),
    st.builds(CardinalityRequest, SEVERAL, MAYBE, COUNTS, st.none() | TEXTS, COUNTS, PART_IDS, st.booleans()),
    st.builds(BucketsRequest, MAYBE, COUNTS),
)
WARNINGS = st.lists(TEXTS, max_size=2).map(tuple)
LABELS = st.dictionaries(TEXTS, TEXTS, max_size=3)


def _joined(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    return np.cumsum([0, *map(len, texts)], dtype=np.int64), np.frombuffer(b"".join(texts), dtype=np.uint8)


def _terms(texts: list[str], *, more: bool, warnings: tuple[str, ...]) -> TermsAnswer:
    offsets, data = _joined([text.encode() for text in texts])
    return TermsAnswer(offsets, data, np.arange(len(texts), dtype=np.int64), more, warnings)


def _samples(series: list[tuple[dict[str, str], list[float]]], warnings: tuple[str, ...]) -> SamplesAnswer:
    keys = KeyBytes(*_joined([encode_part_key(labels) for labels, _ in series]))
    first = np.cumsum([0, *(len(values) for _, values in series)], dtype=np.int64)
    values = np.array([value for _, some in series for value in some], dtype=np.float64)
    return SamplesAnswer(keys, first, np.arange(len(values), dtype=np.int64), values, warnings)


def _hashes(rows: list[tuple[int, int, int]], more: int, warnings: tuple[str, ...]) -> SeriesHashesAnswer:
    ids, low, high = ([row[place] for row in rows] for place in range(3))
    words = np.array(low, dtype=np.uint64), np.array(high, dtype=np.uint64)
    return SeriesHashesAnswer(len(rows) + more, np.array(ids, dtype=np.uint32), *words, warnings)


def _page(keys: KeyBytes, word: int, more: bool, warnings: tuple[str, ...]) -> KeyPageAnswer:
    series = len(keys)
    words = np.full(series, word, dtype=np.uint64)
    times = np.arange(series, dtype=np.int64)
    return KeyPageAnswer(keys, words, words[::-1], times, times + 1, times - 5, times / 3, more, warnings)


def _cardinality(
    labels: list[tuple[str, list[str], list[int]]],
    values: tuple[ValueCardinality, ...],
    listed: bool,
    samples: int | None,
    warnings: tuple[str, ...],
) -> CardinalityAnswer:
    figures = tuple(LabelCardinality(name, len(terms), 3, 4) for name, terms, _ in labels)
    texts = [text.encode() for _, terms, _ in labels for text in terms]
    words = [word for _, _, hashes in labels for word in hashes]
    terms = LabelTerms(
        np.cumsum([0, *(len(terms) for _, terms, _ in labels)], dtype=np.int64),
        *_joined(texts),
        np.arange(len(texts), dtype=np.int64),
        np.cumsum([0, *(len(hashes) for *_, hashes in labels)], dtype=np.int64),
        np.array(words, dtype=np.uint64),
    )
    listed_terms = terms if listed else None
    return CardinalityAnswer(7, figures, values, values, values, listed_terms, samples=samples, warnings=warnings)


WORDS = st.integers(0, 2**64 - 1)
KEYS = st.lists(LABELS, max_size=4).map(lambda some: KeyBytes(*_joined([encode_part_key(labels) for labels in some])))
VALUES = st.lists(st.builds(ValueCardinality, TEXTS, TEXTS, COUNTS), max_size=2).map(tuple)
ANSWERS: st.SearchStrategy[Answer] = st.one_of(
    st.builds(SeriesAnswer, KEYS, st.booleans(), WARNINGS),
    st.builds(_terms, st.lists(TEXTS, max_size=4), more=st.booleans(), warnings=WARNINGS),
    st.builds(_samples, st.lists(st.tuples(LABELS, st.lists(st.floats(), max_size=3)), max_size=3), WARNINGS),
    st.builds(
        _hashes, st.lists(st.tuples(st.integers(0, 2**32 - 1), WORDS, WORDS), max_size=3), st.integers(0, 9), WARNINGS
    ),
    st.builds(_page, KEYS, WORDS, st.booleans(), WARNINGS),
    st.builds(
        _cardinality,
        st.lists(st.tuples(TEXTS, st.lists(TEXTS, max_size=3), st.lists(WORDS, max_size=3)), max_size=2),
        VALUES,
        st.booleans(),
        st.none() | COUNTS,
        WARNINGS,
    ),
    st.builds(
        BucketsAnswer,
        st.lists(
            st.builds(
                BucketFigures, COUNTS, TIMES, TIMES, TIMES, COUNTS, COUNTS, COUNTS, COUNTS, TEXTS, segments=COUNTS
            ),
            max_size=2,
        ).map(tuple),
        WARNINGS,
    ),
)


def frame_of(message: Message) -> bytes:
    return encode_joined(message)


def message_of(frame: bytes) -> Message:
    return decode_frame(bytearray(frame))


def are_identical(first: object, second: object) -> bool:
    """Whether two values are equal, with arrays compared by their bits."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return first.dtype == second.dtype and first.tobytes() == second.tobytes()
    if type(first) is type(second) and hasattr(first, "__slots__") and not isinstance(first, str):
        return all(are_identical(getattr(first, name), getattr(second, name)) for name in first.__slots__)
    return first == second


@given(REQUESTS, st.floats(0, 1e6))
def test_a_request_is_received_as_it_was_sent(sent: ShardRequest, seconds: float) -> None:
    assert request_of(message_of(frame_of(request_message(sent, seconds)))) == (sent, seconds)


@given(ANSWERS)
def test_an_answer_is_received_as_it_was_sent(answer: Answer) -> None:
    assert are_identical(answer_of(message_of(frame_of(answer_message(answer)))), answer)


def test_the_bits_of_a_staleness_marker_arrive() -> None:
    stale = np.array([0x7FF0_0000_0000_0002], dtype=np.uint64).view(np.float64)
    sent = _samples([({"a": "b"}, [0.0])], ())
    sent = SamplesAnswer(sent.keys, sent.first_sample, sent.time, stale)
    received = answer_of(message_of(frame_of(answer_message(sent))))
    assert isinstance(received, SamplesAnswer)
    assert received.value.view(np.uint64).tolist() == [0x7FF0_0000_0000_0002]


@pytest.mark.parametrize(
    "column",
    [
        np.arange(0),
        np.arange(512),
        np.arange(513),
        np.arange(4095, dtype=np.uint8),
        np.arange(4097, dtype=np.uint8),
        np.arange(20)[::3],
        np.arange(9_000)[::3],
        np.arange(20, dtype=">i8"),
        np.arange(9_000, dtype=">f8"),
    ],
    ids=lambda column: f"{len(column)} {column.dtype.str}",
)
def test_a_column_of_any_length_order_and_layout_arrives(column: npt.NDArray[Any]) -> None:
    received = message_of(frame_of(Message("any", {}, (column, np.arange(3), column)))).columns
    assert [received_column.tolist() for received_column in received] == [column.tolist(), [0, 1, 2], column.tolist()]


@given(st.one_of(REQUESTS.map(lambda request: request_message(request, 1.0)), ANSWERS.map(answer_message)))
def test_header_body_and_columns_are_aligned_to_words(message: Message) -> None:
    frame = bytearray(frame_of(message))
    header, body = lengths_of(frame[: PREFIX.size])
    assert (PREFIX.size % 8, header % 8, body % 8) == (0, 0, 0)
    assert len(frame) == PREFIX.size + header + body
    # NumPy allocates memory at a multiple of sixteen bytes.
    buffer = np.frombuffer(frame, dtype=np.uint8).copy()
    assert all(column.flags.aligned for column in decode_frame(buffer.data).columns)


def test_columns_are_views_of_the_frame() -> None:
    buffer = np.frombuffer(frame_of(Message("any", {}, (np.arange(3),))), dtype=np.uint8).copy()
    (column,) = decode_frame(buffer.data).columns
    buffer[-8] = 9
    assert column.tolist() == [0, 1, 9]


@pytest.mark.parametrize("change", [-8, -1, 1, 8])
def test_a_frame_with_a_wrong_length_is_refused(change: int) -> None:
    frame = frame_of(Message("any", {}, (np.arange(3),)))
    expected = f"a frame of {len(frame)} bytes was received as {len(frame) + change} bytes"
    with pytest.raises(FrameDamaged, match=expected):
        decode_frame(bytearray(frame[:change] if change < 0 else frame + bytes(change)))


@pytest.mark.parametrize(
    "error",
    [
        InvalidMatcher('name=~"a[" is no matcher', remedy="Close it"),
        RegexTooCostly("it looks at everything", 17, 23),
        MatcherTooCostly([Matcher("a", MatchOp.MATCH, ".*b")], RegexTooCostly("too many", 17, 23)),
        InvalidSelector("nothing", 4, remedy="Say something"),
        QueryTooLarge("many", remedy="Ask for less"),
        TooManySeries(17, 3),
        TooManySamples(17, 3, at_least=True),
        QueryUnavailable("nobody", remedy="Wait"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_received_as_it_was_raised(error: StrandlineError) -> None:
    with pytest.raises(type(error)) as caught:
        answer_of(message_of(frame_of(error_message(error))))
    received = caught.value
    assert type(received) is type(error)
    assert (str(received), received.message, received.remedy) == (str(error), error.message, error.remedy)
    for name in ("examined_terms", "elapsed_ms", "position", "found"):
        assert getattr(received, name, None) == getattr(error, name, None)


@pytest.mark.parametrize(
    "error", [StoreUnavailable("no answer", remedy="Wait"), KeyError("secret")], ids=["ours", "any"]
)
def test_an_unexpected_error_arrives_as_a_failure(error: Exception) -> None:
    with pytest.raises(QueryFailed) as caught:
        answer_of(message_of(frame_of(error_message(error))))
    assert "secret" not in str(caught.value)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_bytes_that_are_not_a_frame_are_refused(header: bytes, body: bytes) -> None:
    assume(not header.startswith(b"SLQ1"))
    with pytest.raises(FrameDamaged):
        lengths_of((header + bytes(PREFIX.size))[: PREFIX.size])
    with pytest.raises(FrameDamaged):
        decode(header, body)


@given(st.one_of(REQUESTS.map(lambda request: request_message(request, 1.0)), ANSWERS.map(answer_message)), st.data())
def test_a_damaged_frame_is_refused_or_still_valid(message: Message, data: st.DataObject) -> None:
    """A changed byte may be valid. The result is always an answer or an expected error."""
    frame = bytearray(frame_of(message))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(frame)))
    for damaged in (bytes(frame), bytes(frame[:cut])):
        for read in (request_of, answer_of):
            try:
                if len(damaged) >= PREFIX.size:
                    read(message_of(damaged))
            except (FrameDamaged, InvalidMatcher):
                continue


def _with(**changes: object) -> Message:
    return Message(
        "series", {"warnings": [], "more": False} | changes, (np.zeros(1, dtype=np.int64), np.empty(0, "u1"))
    )


@pytest.mark.parametrize(
    "message",
    [
        _with(warnings=None),
        _with(warnings=[1]),
        _with(more=1),
        Message("what", {"warnings": []}),
        Message("series", {"warnings": [], "more": False}),
        Message("series", {"warnings": [], "more": False}, (np.array([1, 0]), np.empty(0, "u1"))),
        Message("series", {"warnings": [], "more": False}, (np.array([0, 2, 1]), np.zeros(1, "u1"))),
        Message("series", {"warnings": [], "more": False}, (np.array([0, 3]), np.frombuffer(b"\5\0a", "u1"))),
        Message("series", {"warnings": [], "more": False}, (np.array([0, 3]), np.frombuffer(b"\1\0a", "u1"))),
        Message("terms", {"warnings": [], "more": False}, (np.array([0, 1]), np.zeros(1, "u1"), np.empty(0, "i8"))),
        Message("terms", {"warnings": [], "more": False}, (np.array([0, 2, 1]), np.zeros(1, "u1"), np.arange(2))),
        Message("buckets", {"warnings": [], "buckets": [{"shard": 1}]}),
        Message("cardinality", {"warnings": [], "series": -1}),
        Message(
            "key-page", {"warnings": [], "more": False}, (np.array([0, 0]), np.empty(0, "u1"), *5 * (np.arange(1),))
        ),
        Message(
            "key-page",
            {"warnings": [], "more": False},
            (np.array([0]), np.empty(0, "u1"), *5 * (np.arange(1),), np.zeros(1)),
        ),
        Message("series-hashes", {"warnings": [], "series": 9}, (np.zeros(4, "u1"), np.arange(2), np.arange(2))),
        Message("series-hashes", {"warnings": [], "series": 1}, (np.zeros(8, "u1"), np.arange(2), np.arange(2))),
    ],
    ids=lambda message: message.kind,
)
def test_an_answer_whose_parts_do_not_fit_together_is_refused(message: Message) -> None:
    with pytest.raises(FrameDamaged):
        answer_of(message_of(frame_of(message)))


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields | {"seconds": -1},
        lambda fields: fields | {"seconds": "1"},
        lambda fields: fields | {"max_series": -1},
        lambda fields: fields | {"max_series": True},
        lambda fields: fields | {"within": None},
        lambda fields: fields | {"within": [1]},
        lambda fields: fields | {"selector": [["a", "?", "b"]]},
        lambda fields: fields | {"selector": [["a", "="]]},
    ],
)
def test_a_request_with_invalid_fields_is_refused(change: Callable[[dict[str, object]], dict[str, object]]) -> None:
    message = request_message(SamplesRequest((), TimeRange(), 1, 1), 1.0)
    with pytest.raises(FrameDamaged):
        request_of(Message(message.kind, change(dict(message.fields))))


def test_another_version_and_too_large_a_frame_are_refused() -> None:
    _, header, *_ = encode(Message("series", {}))
    with pytest.raises(FrameDamaged, match="version 99"):
        decode(bytes(header).replace(b'"version":%d' % VERSION, b'"version":99'), b"")
    with pytest.raises(FrameDamaged, match="claims"):
        lengths_of(struct.pack("<4sIQ", b"SLQ1", 10, 1 << 60))
