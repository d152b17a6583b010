"""`query` and `query_range` over HTTP."""

import struct
from typing import Any

import orjson
import pytest

from strandline.clock import ManualClock
from strandline.node.query.asks import SamplesAsk
from strandline.node.settings.http_sections import QuerySettings
from strandline.time_range import TimeRange
from support.fake_queries import FakeQueries
from support.http_servers import Reply, api_served, in_loop

pytestmark = pytest.mark.unit

(STALE,) = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))
A = {"__name__": "up", "job": "a"}
B = {"__name__": "up", "job": "b"}
SERIES = [(A, [(10_000, 1.0), (20_000, 2.5)]), (B, [(10_000, 3.0), (20_000, STALE)])]
NOW = 20_500


def ask(queries: FakeQueries, path: str, settings: QuerySettings | None = None, **form: str) -> Reply:
    async def test() -> Reply:
        async with api_served(queries, settings, clock=ManualClock(NOW)) as serving:
            return await serving.post(f"/api/v1/{path}", data=form)

    return in_loop(test())


def data_of(reply: Reply) -> Any:
    told = orjson.loads(reply.body)
    assert (reply.status, told["status"]) == (200, "success"), reply.body
    return told["data"]


def error_of(reply: Reply) -> tuple[int, str, str]:
    told = orjson.loads(reply.body)
    return reply.status, told["errorType"], told["error"]


def test_a_selector_has_the_values_of_now() -> None:
    assert data_of(ask(FakeQueries(SERIES), "query", query="up")) == {
        "resultType": "vector",
        "result": [{"metric": A, "value": [20.5, "2.5"]}],
    }


def test_a_selector_has_the_values_of_the_time_that_is_asked_for() -> None:
    assert data_of(ask(FakeQueries(SERIES), "query", query='up{job="b"}', time="19.999")) == {
        "resultType": "vector",
        "result": [{"metric": B, "value": [19.999, "3"]}],
    }


def test_a_range_has_its_samples_at_their_own_times() -> None:
    assert data_of(ask(FakeQueries(SERIES), "query", query="up[15s]")) == {
        "resultType": "matrix",
        "result": [
            {"metric": A, "values": [[10, "1"], [20, "2.5"]]},
            {"metric": B, "values": [[10, "3"]]},
        ],
    }


def test_just_the_samples_that_count_are_asked_for() -> None:
    queries = FakeQueries(SERIES)
    settings = QuerySettings(max_series=7, max_samples=8, lookback="10s")
    ask(queries, "query", settings, query="up")
    ask(queries, "query", settings, query="up[1m] offset 5s", time="100")
    ask(queries, "query_range", settings, query="up", start="50", end="70", step="8")
    ask(queries, "query_range", settings, query="up @ 30", start="50", end="70", step="8")
    selector = queries.asked[0].selector
    assert queries.asked == [
        SamplesAsk(selector, TimeRange(NOW - 9_999, NOW), 7, 8),
        SamplesAsk(selector, TimeRange(35_001, 95_000), 7, 8),
        # The last step is at 66 s.
        SamplesAsk(selector, TimeRange(40_001, 66_000), 7, 8),
        SamplesAsk(selector, TimeRange(20_001, 30_000), 7, 8),
    ]


def test_a_range_query_has_a_value_at_each_step() -> None:
    found = data_of(ask(FakeQueries(SERIES), "query_range", query="up", start="5", end="25", step="5s"))
    assert found == {
        "resultType": "matrix",
        "result": [
            {"metric": A, "values": [[10, "1"], [15, "1"], [20, "2.5"], [25, "2.5"]]},
            {"metric": B, "values": [[10, "3"], [15, "3"]]},
        ],
    }


def test_the_lookback_may_be_asked_for() -> None:
    assert data_of(ask(FakeQueries(SERIES), "query", query="up", lookback_delta="100ms"))["result"] == []
    assert error_of(ask(FakeQueries(SERIES), "query", query="up", lookback_delta="0"))[:2] == (400, "bad_data")


def test_grafanas_question_whether_somebody_is_there_is_answered() -> None:
    assert data_of(ask(FakeQueries(), "query", query="1+1", time="1.5")) == {
        "resultType": "scalar",
        "result": [1.5, "2"],
    }
    assert data_of(ask(FakeQueries(), "query_range", query="1+1", start="0", end="3", step="1.5")) == {
        "resultType": "matrix",
        "result": [{"metric": {}, "values": [[0, "2"], [1.5, "2"], [3, "2"]]}],
    }


@pytest.mark.parametrize("path", ["query", "query_range"])
def test_other_expressions_are_bad_data_and_say_where_promql_is(path: str) -> None:
    queries = FakeQueries(SERIES)
    status, kind, text = error_of(ask(queries, path, query="rate(up[5m])", start="0", end="1", step="1"))
    assert (status, kind) == (400, "bad_data")
    assert "not a plain selector" in text
    assert "remote_read" in text
    assert queries.asked == []


@pytest.mark.parametrize(
    ("form", "fault"),
    [
        ({}, '"query" is missing'),
        ({"query": "up"}, '"start" is missing'),
        ({"query": "up", "start": "0"}, '"end" is missing'),
        ({"query": "up", "start": "0", "end": "1"}, '"step" is missing'),
        ({"query": "up", "start": "0", "end": "1", "step": "0"}, '"step" is not above zero'),
        ({"query": "up", "start": "0", "end": "1", "step": "-1"}, '"step" is not above zero'),
        ({"query": "up", "start": "0", "end": "1", "step": "0.0001"}, '"step" is shorter than a millisecond'),
        ({"query": "up", "start": "0", "end": "1", "step": "x"}, '"step" is no duration'),
        ({"query": "up", "start": "1", "end": "0", "step": "1"}, '"end" lies before "start"'),
        ({"query": "up[5m]", "start": "0", "end": "1", "step": "1"}, "one value at each step"),
        ({"query": "up", "start": "0", "end": "11001", "step": "1"}, "11002 points a series are more than the 11000"),
        ({"query": "up", "start": "-1e300", "end": "1e300", "step": "1ms"}, "more than the 11000"),
        ({"query": "up", "start": "0", "end": "1", "step": "1", "limit": "x"}, '"limit" is not a non-negative integer'),
    ],
)
def test_wrong_range_queries_are_refused(form: dict[str, str], fault: str) -> None:
    status, kind, text = error_of(ask(FakeQueries(SERIES), "query_range", **form))
    assert (status, kind) == (400, "bad_data")
    assert fault in text


def test_as_many_points_as_prometheus_gives_are_given() -> None:
    found = data_of(ask(FakeQueries(), "query_range", query="1", start="0", end="11000", step="1"))
    assert len(found["result"][0]["values"]) == 11_001


def test_a_time_far_away_has_no_values() -> None:
    for time in ("1e300", "-292273086-05-16T16:47:06Z"):
        assert data_of(ask(FakeQueries(SERIES), "query", query="up offset 1y", time=time))["result"] == []


@pytest.mark.parametrize(
    ("path", "form"),
    [("query", {"query": "up", "time": "15"}), ("query", {"query": "up[1m]"}),
     ("query_range", {"query": "up", "start": "10", "end": "20", "step": "5"})],
)  # fmt: skip
def test_a_limit_cuts_the_series_off_with_a_warning(path: str, form: dict[str, str]) -> None:
    whole = orjson.loads(ask(FakeQueries(SERIES), path, limit="2", **form).body)
    cut = orjson.loads(ask(FakeQueries(SERIES, warnings=("w",)), path, limit="1", **form).body)
    assert cut["data"]["result"] == whole["data"]["result"][:1]
    assert cut["warnings"] == ["w", "results truncated due to limit: there are 2 series"]
    assert "warnings" not in whole


def test_more_points_than_a_query_may_read_are_refused() -> None:
    reply = ask(
        FakeQueries(SERIES), "query_range", QuerySettings(max_samples=10), query="up", start="10", end="19", step="1"
    )
    assert error_of(reply)[:2] == (422, "execution")


def test_more_series_than_a_query_may_read_are_refused() -> None:
    assert error_of(ask(FakeQueries(SERIES), "query", QuerySettings(max_series=1), query="up[1m]"))[0] == 422
