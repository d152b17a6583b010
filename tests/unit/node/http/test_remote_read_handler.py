"""`POST /api/v1/read` over HTTP: responses, limits, partial answers and errors."""

import gzip
from collections.abc import AsyncIterator

import pytest

from strandline.index.matchers import InvalidMatcher, Matcher, MatchOp
from strandline.node.http.remote_read.handler import MAX_BODY
from strandline.node.masking import SecretMask
from strandline.node.query.answers import LACKS_LATER_ONLY
from strandline.node.query.queries import QueryScope, QueryTimedOut, QueryTooLarge, QueryUnavailable
from strandline.node.query.shard_requests import SamplesRequest, SeriesRequest
from strandline.node.settings.http_sections import QuerySettings
from strandline.time_range import TimeRange
from support.read_queries import ReadQueries
from support.read_responses import LOAD, SERIES, UP, UP_A, UP_B, one_query, posted, read, talk
from support.remote_read import (
    LabelMatcher,
    Query,
    ReadHints,
    packed_request,
    read_sampled,
    read_streamed,
)

pytestmark = pytest.mark.unit


def test_a_sampled_response_is_one_snappy_block() -> None:
    response = read(ReadQueries(SERIES), one_query())
    assert response.status == 200
    assert response.headers["Content-Type"] == "application/x-protobuf"
    assert response.headers["Content-Encoding"] == "snappy"
    # The staleness marker has its exact bits.
    assert read_sampled(response.body) == [{UP_A: SERIES[UP_A], UP_B: SERIES[UP_B]}]


def test_a_chunked_response_is_a_stream_of_frames() -> None:
    response = read(ReadQueries(SERIES), one_query(1, 0))
    assert response.status == 200
    expected = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse"
    assert response.headers["Content-Type"] == expected
    assert "Content-Encoding" not in response.headers
    assert read_streamed(response.body, 1) == [{UP_A: SERIES[UP_A], UP_B: SERIES[UP_B]}]


@pytest.mark.parametrize("accepted", [0, 1])
def test_queries_are_answered_in_their_order(accepted: int) -> None:
    load = [LabelMatcher(type=2, name="__name__", value="lo.*"), LabelMatcher(type=3, name="job", value="b|c")]
    no_match = [LabelMatcher(name="__name__", value="none")]
    requested = [
        Query(start_timestamp_ms=2000, end_timestamp_ms=2999, matchers=UP),
        Query(start_timestamp_ms=0, end_timestamp_ms=5000, matchers=no_match),
        Query(start_timestamp_ms=1000, end_timestamp_ms=1000, matchers=load),
    ]
    queries = ReadQueries(SERIES)
    response = read(queries, packed_request(requested, [accepted]))
    results = read_streamed(response.body, 3) if accepted else read_sampled(response.body)
    assert results == [{UP_A: SERIES[UP_A][1:2]}, {}, {LOAD: SERIES[LOAD][:1]}]
    assert isinstance(queries.requests[2], SamplesRequest)
    assert queries.requests[2].selector == (
        Matcher("__name__", MatchOp.MATCH, "lo.*"),
        Matcher("job", MatchOp.NOT_MATCH, "b|c"),
    )
    assert queries.requests[2].within == TimeRange(1000, 1000)


@pytest.mark.parametrize("accepted", [0, 1])
def test_a_range_that_ends_before_it_starts_is_empty_and_not_queried(accepted: int) -> None:
    queries = ReadQueries(SERIES)
    response = read(queries, one_query(accepted, start=2000, end=1999))
    assert response.status == 200
    assert (read_streamed(response.body, 1) if accepted else read_sampled(response.body)) == [{}]
    assert queries.requests == []


@pytest.mark.parametrize("accepted", [0, 1])
def test_a_request_without_a_query_has_an_answer_without_a_result(accepted: int) -> None:
    response = read(ReadQueries(SERIES), packed_request([], [accepted]))
    assert (response.status, response.body) == (200, b"" if accepted else b"\x00")


@pytest.mark.parametrize("accepted", [0, 1])
def test_a_request_for_labels_only_reads_no_samples(accepted: int) -> None:
    queries = ReadQueries(SERIES)
    response = read(queries, one_query(accepted, hints=ReadHints(func="series")))
    assert (read_streamed(response.body, 1) if accepted else read_sampled(response.body)) == [{UP_A: [], UP_B: []}]
    selector = (Matcher("__name__", MatchOp.EQUAL, "up"),)
    assert queries.requests == [SeriesRequest((selector,), TimeRange(0, 10_000), QuerySettings().max_series)]


def test_more_labels_than_a_query_may_read_are_refused() -> None:
    response = read(ReadQueries(SERIES), one_query(hints=ReadHints(func="series")), max_series=1)
    assert response.status == 422
    assert "series limit (1): the selector matches 2 series" in response.text
    assert "query.max_series" in response.text


def test_the_limits_of_a_query_hold() -> None:
    assert read(ReadQueries(SERIES), one_query(), max_samples=4, max_series=2).status == 200
    refused = read(ReadQueries(SERIES), one_query(), max_samples=3)
    assert (refused.status, refused.text) == (422, "exceeded sample limit (3). Ask for less\n")
    refused = read(ReadQueries(SERIES), one_query(1), max_series=1)
    assert (refused.status, refused.text) == (422, "exceeded series limit (1)\n")


def test_the_queries_of_a_request_share_the_limits() -> None:
    query = Query(start_timestamp_ms=0, end_timestamp_ms=10_000, matchers=UP)
    assert read(ReadQueries(SERIES), packed_request([query] * 2), max_samples=8, max_series=4).status == 200
    for limits in ({"max_samples": 7}, {"max_series": 3}):
        refused = read(ReadQueries(SERIES), packed_request([query] * 2), **limits)
        assert refused.status == 422
        assert refused.text.startswith("query 2 of 2, with what the earlier ones left of the limits: exceeded")


@pytest.mark.parametrize("accepted", [0, 1])
def test_an_answer_that_may_be_partial_is_refused_with_the_reason(accepted: int) -> None:
    queries = ReadQueries(SERIES, ("shard 1 is recovering (40 %)",))
    response = read(queries, one_query(accepted))
    assert response.status == 503
    assert response.text.startswith("the answer may be partial: shard 1 is recovering (40 %)")
    assert "?partial=allow" in response.text
    assert read(queries, one_query(accepted), parameters="?partial=deny").status == 503


def test_reads_of_times_that_only_very_late_samples_may_reach_go_on_while_kafka_is_away() -> None:
    warning = f"shard 1 can't reach Kafka (24 s): {LACKS_LATER_ONLY}"
    queries = ReadQueries(SERIES, (warning,))
    response = read(queries, one_query())
    assert (response.status, response.headers["X-Strandline-Warnings"]) == (200, warning)
    queries.warnings = (warning, "shard 0 is recovering")
    refused = read(queries, one_query())
    assert (refused.status, LACKS_LATER_ONLY in refused.text) == (503, False)


def test_a_client_may_request_a_partial_answer() -> None:
    queries = ReadQueries(SERIES, ("shard 1 is\nrecovering", "a list “was” cut off"))
    response = read(queries, one_query(), parameters="?partial=allow")
    assert response.status == 200
    assert read_sampled(response.body) == [{UP_A: SERIES[UP_A], UP_B: SERIES[UP_B]}]
    assert response.headers["X-Strandline-Warnings"] == "shard 1 is recovering; a list ?was? cut off"


def test_a_node_of_several_is_read_by_clients_that_read_from_all() -> None:
    elsewhere = "this node does not serve partition 1 of 2: the answer lacks the series there"
    queries = ReadQueries(SERIES, (elsewhere,))
    queries.unserved_partitions = (elsewhere,)
    refused = read(queries, one_query())
    assert (refused.status, elsewhere in refused.text) == (503, True)
    assert refused.text.endswith("Read from every node of the dataset, each with ?partial=node\n")
    response = read(queries, one_query(), parameters="?partial=node")
    assert (response.status, response.headers["X-Strandline-Warnings"]) == (200, elsewhere)
    queries.warnings = ("shard 0 is recovering", elsewhere)
    refused = read(queries, one_query(), parameters="?partial=node")
    assert refused.status == 503, "series of the node's own partitions are complete or refused"
    assert refused.text.startswith("the answer may be partial: shard 0 is recovering. Try again")


def test_an_unknown_value_of_partial_is_refused() -> None:
    response = read(ReadQueries(SERIES), one_query(), parameters="?partial=yes")
    assert (response.status, response.text) == (400, "partial=yes is not a valid value. Use allow, deny or node\n")


def test_a_warning_of_several_queries_is_sent_once() -> None:
    query = Query(end_timestamp_ms=10_000, matchers=UP)
    response = read(ReadQueries(SERIES, ("shard 1 is away",)), packed_request([query] * 3))
    assert response.text.count("shard 1 is away") == 1


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidMatcher("no expression", remedy="Write another"), 400),
        (QueryTooLarge("too large"), 422),
        (QueryUnavailable("no shard answers"), 503),
        (QueryTimedOut("too late"), 503),
    ],
)
def test_an_error_is_plain_text_with_its_status(error: Exception, status: int) -> None:
    queries = ReadQueries(SERIES)

    async def fail(_scope: QueryScope) -> None:
        raise error

    queries.before = fail
    response = read(queries, one_query())
    assert (response.status, response.text) == (status, f"{error}\n")


def test_no_error_shows_a_secret() -> None:
    queries = ReadQueries(SERIES)

    async def fail(_scope: QueryScope) -> None:
        raise QueryUnavailable("the driver said: bad password hunter22")

    queries.before = fail
    response = read(queries, one_query(), mask=SecretMask(["hunter22"]))
    assert response.text == "the driver said: bad password (hidden)\n"


def test_a_broken_request_is_answered_with_400_and_the_reason() -> None:
    response = read(ReadQueries(SERIES), b"no snappy")
    assert response.status == 400
    assert response.text.startswith("the read request can't be decompressed: ")


def test_a_body_that_is_too_large_is_refused_however_it_is_sent() -> None:
    announced = read(ReadQueries(SERIES), bytes(MAX_BODY + 1))
    assert announced.status == 413
    assert str(MAX_BODY) in announced.body.decode()

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY >> 20):
            yield bytes(1 << 20)
        yield b"1"

    chunked = talk(ReadQueries(SERIES), lambda serving: posted(serving, chunks()))
    assert chunked.status == 413
    assert str(MAX_BODY) in chunked.text


def test_a_body_with_another_encoding_is_refused() -> None:
    response = read(ReadQueries(SERIES), gzip.compress(one_query()), encoding="gzip")
    assert response.status == 415
    assert "compressed with snappy, not 'gzip'" in response.text
