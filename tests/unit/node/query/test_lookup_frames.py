"""Lookups as the front packs them for a shard's JVM, decoded by an independent implementation of the layout."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.matchers import Matcher, MatchOp
from strandline.node.query.frames import Message, decode_frame, encode_joined
from strandline.node.query.index_version import version_path
from strandline.node.query.lookup_frames import MAX_LOOKUP, lookup_frame, lookups_path
from strandline.node.query.shard_requests import (
    LABEL_NAMES,
    LABEL_VALUES,
    SERIES,
    BucketsRequest,
    CardinalityRequest,
    LabelNamesRequest,
    LabelValuesRequest,
    SamplesRequest,
    SeriesRequest,
    ShardRequest,
)
from strandline.node.supervisor.socket_folder import socket_path
from strandline.time_range import ALL_TIMES, EARLIEST, LATEST, TimeRange
from support.packed_lookups import ALWAYS, PackedLookup, framed

pytestmark = pytest.mark.unit

LONGEST_OF_THE_JVM = 32 << 10
WORDS = st.text("ab_é\U0001f600 ", min_size=1, max_size=6)
PLAIN_WORDS = st.text("abc_", min_size=1, max_size=4)
# Each with the label and value that the packed lookup has.
PLAIN = st.one_of(
    st.builds(lambda label, value: (Matcher(label, MatchOp.EQUAL, value), (label, value)), WORDS, WORDS),
    st.builds(
        lambda label, values: (
            Matcher(label, MatchOp.MATCH, "|".join(values)),
            (label, tuple(values) if len(values) > 1 else values[0]),
        ),
        WORDS,
        st.lists(PLAIN_WORDS, min_size=1, max_size=4),
    ),
)
SELECTORS = st.lists(st.lists(PLAIN, min_size=1, max_size=3), min_size=1, max_size=3)
RANGES = st.none() | st.tuples(*(st.integers(EARLIEST, LATEST),) * 2).map(lambda two: TimeRange(*sorted(two)))
LIMITS = st.integers(0, 2**40)
JOB = (Matcher("job", MatchOp.EQUAL, "a"),)


@given(SELECTORS, WORDS, RANGES, LIMITS)
def test_a_lookup_is_decoded_as_it_was_encoded(
    selectors: list[list[tuple[Matcher, tuple[str, str]]]], label: str, within: TimeRange | None, limit: int
) -> None:
    matchers = tuple(tuple(matcher for matcher, _ in selector) for selector in selectors)
    expected = [[term for _, term in selector] for selector in selectors]
    times = (within.first, within.last) if within is not None else ALWAYS
    max_results = min(limit, 2**31 - 1)
    for request, kind, of in (
        (SeriesRequest(matchers, within, limit), SERIES, ""),
        (LabelNamesRequest(matchers, within, limit), LABEL_NAMES, ""),
        (LabelValuesRequest(label, matchers, within, limit), LABEL_VALUES, label),
    ):
        frame = lookup_frame(request)
        assert frame is not None
        assert PackedLookup.of(frame) == PackedLookup(kind, expected, of, times, max_results)
        assert frame == PackedLookup(kind, expected, of, times, max_results).frame()


@given(st.binary(max_size=40))
def test_a_lookup_is_a_frame_of_the_link(packed: bytes) -> None:
    """The general encoder makes the same frame."""
    column = np.frombuffer(packed, dtype=np.uint8)
    assert encode_joined(Message("lookup", {}, (column,))) == framed(packed)


def test_the_link_decodes_a_lookup() -> None:
    frame = lookup_frame(SeriesRequest((JOB,), None, 5))
    assert frame is not None
    message = decode_frame(bytearray(frame))
    assert (message.kind, len(message.columns)) == ("lookup", 1)


@pytest.mark.parametrize(
    "shard_request",
    [
        SamplesRequest(JOB, ALL_TIMES, 1, 1),
        CardinalityRequest((JOB,), None, 1),
        BucketsRequest(None, 1),
        SeriesRequest((), None, 1),
        SeriesRequest(((),), None, 1),
        SeriesRequest((JOB, ()), None, 1),
        LabelNamesRequest((), None, 1),
        LabelValuesRequest("job", (), None, 1),
        SeriesRequest(((Matcher("job", MatchOp.NOT_EQUAL, "a"),),), None, 1),
        SeriesRequest(
            (
                (
                    *JOB,
                    Matcher("job", MatchOp.NOT_MATCH, "a"),
                ),
            ),
            None,
            1,
        ),
        SeriesRequest(((Matcher("job", MatchOp.MATCH, "a.*"),),), None, 1),
        SeriesRequest(((Matcher("job", MatchOp.MATCH, "a|"),),), None, 1),
        SeriesRequest(((Matcher("job", MatchOp.EQUAL, ""),),), None, 1),
    ],
    ids=repr,
)
def test_other_requests_are_not_lookups(shard_request: ShardRequest) -> None:
    assert lookup_frame(shard_request) is None


def test_an_empty_range_does_not_mean_all_times() -> None:
    assert lookup_frame(SeriesRequest((JOB,), TimeRange(5, 5), 1)) is not None
    assert lookup_frame(SeriesRequest((JOB,), TimeRange(5, 4), 1)) is None


@pytest.mark.parametrize("label_length", [0, 100, MAX_LOOKUP - 30, 20_000, 32_766])
def test_a_lookup_is_never_longer_than_the_jvm_accepts(label_length: int) -> None:
    """The JVM closes the connection at a longer one, and gets no lookups for a second."""
    encodable = set()
    for length in (1, 100, 1000, MAX_LOOKUP - 100 - 30, MAX_LOOKUP, 32_000):
        selectors = ((Matcher("job", MatchOp.EQUAL, "v" * length),),)
        frame = lookup_frame(LabelValuesRequest("l" * label_length, selectors, None, 1))
        assert frame is None or len(frame) <= LONGEST_OF_THE_JVM
        encodable.add(frame is not None)
    assert encodable == ({True, False} if label_length < MAX_LOOKUP else {False})


def test_each_shard_has_its_own_paths_for_link_lookups_and_version() -> None:
    links = [socket_path(Path("/run/strandline"), shard) for shard in range(200)]
    derived = [path_of(link) for link in links for path_of in (lookups_path, version_path)]
    assert {path.parent for path in derived} == {Path("/run/strandline")}
    assert len({*links, *derived}) == 3 * len(links)
    assert all(len(lookups_path(link).name) <= len(link.name) for link in links), (
        "the kernel limits the length of a socket's path"
    )
