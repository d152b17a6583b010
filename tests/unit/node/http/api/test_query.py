"""`query` and `query_range` over HTTP."""

import asyncio
import struct
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from strandline.clock import ManualClock
from strandline.errors import StrandlineError
from strandline.index.matchers import InvalidMatcher
from strandline.node.query.answers import FragmentResult
from strandline.node.query.queries import (
    EvaluationLimits,
    QueryCancelled,
    QueryScope,
    QueryTimedOut,
    QueryUnavailable,
    TooManySeries,
)
from strandline.node.settings.http_sections import QuerySettings
from strandline.promql.errors import EvaluationError
from strandline.promql.plan.fragments import AnyFragment
from support.fake_queries import FakeQueries
from support.http_servers import Reply, api_served, eventually, in_loop

pytestmark = pytest.mark.unit

(STALE,) = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))
A = {"__name__": "up", "job": "a"}
B = {"__name__": "up", "job": "b"}
SERIES = [(A, [(10_000, 1.0), (20_000, 2.5)]), (B, [(10_000, 3.0), (20_000, STALE)])]
NOW = 20_500


def post(queries: FakeQueries, path: str, settings: QuerySettings | None = None, **form: str) -> Reply:
    async def test() -> Reply:
        async with api_served(queries, settings, clock=ManualClock(NOW)) as serving:
            return await serving.post(f"/api/v1/{path}", data=form)

    return in_loop(test())


def data_of(reply: Reply) -> Any:
    body = orjson.loads(reply.body)
    assert (reply.status, body["status"]) == (200, "success"), reply.body
    return body["data"]


def error_of(reply: Reply) -> tuple[int, str, str]:
    body = orjson.loads(reply.body)
    return reply.status, body["errorType"], body["error"]


def test_a_selector_has_the_current_values_by_default() -> None:
    assert data_of(post(FakeQueries(SERIES), "query", query="up")) == {
        "resultType": "vector",
        "result": [{"metric": A, "value": [20.5, "2.5"]}],
    }


def test_a_selector_has_the_values_at_the_requested_time() -> None:
    assert data_of(post(FakeQueries(SERIES), "query", query='up{job="b"}', time="19.999")) == {
        "resultType": "vector",
        "result": [{"metric": B, "value": [19.999, "3"]}],
    }


def test_a_range_has_its_samples_at_their_own_times() -> None:
    assert data_of(post(FakeQueries(SERIES), "query", query="up[15s]")) == {
        "resultType": "matrix",
        "result": [
            {"metric": A, "values": [[10, "1"], [20, "2.5"]]},
            {"metric": B, "values": [[10, "3"]]},
        ],
    }


def test_only_the_needed_samples_are_requested() -> None:
    queries = FakeQueries(SERIES)
    settings = QuerySettings(lookback="10s")
    post(queries, "query", settings, query="up")
    post(queries, "query", settings, query="up[1m] offset 5s", time="100")
    post(queries, "query_range", settings, query="up", start="50", end="70", step="8")
    post(queries, "query_range", settings, query="up @ 30", start="50", end="70", step="8")
    assert [(fragment.first, fragment.last) for fragment in queries.fragments] == [
        (NOW - 9_999, NOW),
        (35_001, 95_000),
        # The last step is at 66 s.
        (40_001, 66_000),
        (20_001, 30_000),
    ]


def test_a_range_query_has_a_value_at_each_step() -> None:
    data = data_of(post(FakeQueries(SERIES), "query_range", query="up", start="5", end="25", step="5s"))
    assert data == {
        "resultType": "matrix",
        "result": [
            {"metric": A, "values": [[10, "1"], [15, "1"], [20, "2.5"], [25, "2.5"]]},
            {"metric": B, "values": [[10, "3"], [15, "3"]]},
        ],
    }


def test_the_lookback_may_be_requested() -> None:
    assert data_of(post(FakeQueries(SERIES), "query", query="up", lookback_delta="100ms"))["result"] == []
    assert error_of(post(FakeQueries(SERIES), "query", query="up", lookback_delta="0"))[:2] == (400, "bad_data")


def test_grafanas_health_query_is_answered() -> None:
    assert data_of(post(FakeQueries(), "query", query="1+1", time="1.5")) == {
        "resultType": "scalar",
        "result": [1.5, "2"],
    }
    assert data_of(post(FakeQueries(), "query_range", query="1+1", start="0", end="3", step="1.5")) == {
        "resultType": "matrix",
        "result": [{"metric": {}, "values": [[0, "2"], [1.5, "2"], [3, "2"]]}],
    }


@pytest.mark.parametrize("path", ["query", "query_range"])
def test_a_query_that_does_not_parse_is_bad_data_with_its_place(path: str) -> None:
    queries = FakeQueries(SERIES)
    status, kind, text = error_of(post(queries, path, query="sum(up", start="0", end="1", step="1"))
    assert (status, kind) == (400, "bad_data")
    assert text.startswith('invalid parameter "query": 1:')
    assert "parse error: " in text
    assert queries.fragments == []


@pytest.mark.parametrize(
    ("form", "fault"),
    [
        ({"start": "0", "end": "1", "step": "1"}, "no expression found in input"),
        ({"query": "up"}, '"start" is missing'),
        ({"query": "up", "start": "0"}, '"end" is missing'),
        ({"query": "up", "start": "0", "end": "1"}, '"step" is missing'),
        ({"query": "up", "start": "0", "end": "1", "step": "0"}, '"step": zero or negative query resolution'),
        ({"query": "up", "start": "0", "end": "1", "step": "-1"}, '"step": zero or negative query resolution'),
        ({"query": "up", "start": "0", "end": "1", "step": "0.0001"}, '"step" is shorter than a millisecond'),
        ({"query": "up", "start": "0", "end": "1", "step": "x"}, '"step" is not a duration'),
        ({"query": "up", "start": "1", "end": "0", "step": "1"}, '"end": end timestamp must not be before start'),
        (
            {"query": "up[5m]", "start": "0", "end": "1", "step": "1"},
            'invalid expression type "range vector" for range query',
        ),
        ({"query": "up", "start": "0", "end": "11001", "step": "1"}, "maximum resolution of 11,000 points"),
        ({"query": "up", "start": "-1e300", "end": "1e300", "step": "1ms"}, "maximum resolution of 11,000 points"),
        ({"query": "up", "start": "0", "end": "1", "step": "1", "limit": "x"}, '"limit" is not a non-negative integer'),
    ],
)
def test_invalid_range_queries_are_refused(form: dict[str, str], fault: str) -> None:
    status, kind, text = error_of(post(FakeQueries(SERIES), "query_range", **form))
    assert (status, kind) == (400, "bad_data")
    assert fault in text


def test_as_many_points_as_in_prometheus_are_returned() -> None:
    data = data_of(post(FakeQueries(), "query_range", query="1", start="0", end="11000", step="1"))
    assert len(data["result"][0]["values"]) == 11_001


def test_a_time_far_away_has_no_values() -> None:
    for time in ("1e300", "-292273086-05-16T16:47:06Z"):
        assert data_of(post(FakeQueries(SERIES), "query", query="up offset 1y", time=time))["result"] == []


@pytest.mark.parametrize(
    ("path", "form"),
    [("query", {"query": "up", "time": "15"}), ("query", {"query": "up[1m]"}),
     ("query_range", {"query": "up", "start": "10", "end": "20", "step": "5"})],
)  # fmt: skip
def test_a_limit_truncates_the_series_with_a_warning(path: str, form: dict[str, str]) -> None:
    complete = orjson.loads(post(FakeQueries(SERIES), path, limit="2", **form).body)
    truncated = orjson.loads(post(FakeQueries(SERIES, warnings=("w",)), path, limit="1", **form).body)
    assert truncated["data"]["result"] == complete["data"]["result"][:1]
    assert truncated["warnings"] == ["w", "results truncated due to limit: there are 2 series"]
    assert "warnings" not in complete


def test_more_points_than_a_query_may_read_are_refused() -> None:
    reply = post(
        FakeQueries(SERIES), "query_range", QuerySettings(max_samples=10), query="up", start="10", end="19", step="1"
    )
    assert error_of(reply)[:2] == (422, "execution")


def test_more_series_than_a_query_may_read_are_refused() -> None:
    assert error_of(post(FakeQueries(SERIES), "query", QuerySettings(max_series=1), query="up[1m]"))[0] == 422


def test_expressions_are_evaluated_over_all_shards() -> None:
    series = [
        ({"__name__": "c_total", "job": job, "n": str(n)}, [(0, 0.0), (60_000, 60.0)]) for job in "ab" for n in range(9)
    ]
    data = data_of(
        post(FakeQueries(series, shards=5), "query", query="sum by (job) (increase(c_total[61s]))", time="60")
    )
    assert [(result["metric"], result["value"]) for result in data["result"]] == [
        ({"job": "a"}, [60, "540"]),
        ({"job": "b"}, [60, "540"]),
    ]


def test_a_string_has_its_time() -> None:
    assert data_of(post(FakeQueries(), "query", query='"a\\n\\xff"', time="1.5")) == {
        "resultType": "string",
        "result": [1.5, "a\n\ufffd"],
    }


def test_an_expression_without_an_answer_is_an_execution_error() -> None:
    status, kind, text = error_of(post(FakeQueries(SERIES), "query", query="topk(NaN, up)"))
    assert (status, kind) == (422, "execution")
    assert "Parameter value is NaN" in text


def test_warnings_and_infos_are_separate_and_name_their_position() -> None:
    body = orjson.loads(
        post(FakeQueries(SERIES, warnings=("w",)), "query", query="quantile(2, up) or rate(up[1m])").body
    )
    assert body["warnings"] == ["w", "PromQL warning: quantile value should be between 0 and 1, got 2 (1:10)"]
    assert len(body["infos"]) == 1
    assert "might not be a counter" in body["infos"][0]


@pytest.mark.parametrize("query", ["absent(up)", "1 + sum(absent_over_time(up[1m]))"])
def test_absent_is_refused_while_a_shard_is_missing(query: str) -> None:
    assert post(FakeQueries(SERIES), "query", query=query).status == 200
    status, kind, text = error_of(post(FakeQueries(SERIES, warnings=("shard 3 is down",)), "query", query=query))
    assert (status, kind) == (503, "unavailable")
    assert "shard 3 is down" in text


UNSERVED = "this node does not serve partitions 2-3 of 4: the answer lacks the series there"


@pytest.mark.parametrize(
    ("query", "partial", "cause"),
    [("absent(up)", "warn", "absent() and"), ("up", "refuse", 'query.partial is "refuse"')],
)
def test_a_node_of_some_partitions_names_the_unserved_ones_and_a_remedy(query: str, partial: str, cause: str) -> None:
    queries, settings = FakeQueries(SERIES, warnings=(UNSERVED,)), QuerySettings(partial=partial)
    queries.unserved_partitions = (UNSERVED,)
    status, kind, text = error_of(post(queries, "query", settings, query=query))
    assert (status, kind) == (503, "unavailable")
    assert UNSERVED in text
    assert cause in text
    assert "node.shards" in text
    # If a shard is down as well, a retry may help.
    queries.warnings = (UNSERVED, "shard 1 is down")
    assert "Try again" in error_of(post(queries, "query", settings, query=query))[2]


def test_partial_answers_are_refused_if_the_settings_disable_them() -> None:
    queries = FakeQueries(SERIES, warnings=("shard 3 is down",))
    refused = error_of(post(queries, "query", QuerySettings(partial="refuse"), query="up"))
    assert refused[:2] == (503, "unavailable")
    assert "shard 3 is down" in refused[2]
    assert post(queries, "query", QuerySettings(partial="refuse"), query="1").status == 200
    assert post(FakeQueries(SERIES), "query", QuerySettings(partial="refuse"), query="up").status == 200


@pytest.mark.parametrize(
    ("failure", "status", "kind"),
    [
        (EvaluationError("no"), 422, "execution"),
        (TooManySeries(2, 1), 422, "execution"),
        (QueryTimedOut("late"), 503, "timeout"),
        (QueryCancelled("gone"), 499, "canceled"),
        (QueryUnavailable("none"), 503, "unavailable"),
        (InvalidMatcher("bad"), 400, "bad_data"),
    ],
)
@pytest.mark.parametrize("query", ["up", "up + foo"])
def test_errors_of_a_shard_have_prometheus_error_types(
    query: str, failure: StrandlineError, status: int, kind: str
) -> None:
    assert error_of(post(FakeQueries(SERIES, failure=failure), "query", query=query))[:2] == (status, kind)


def test_subqueries_count_against_the_limit_on_samples() -> None:
    settings, query = QuerySettings(max_samples=1000), "max_over_time(vector(time())[{}:1s])"
    assert post(FakeQueries(), "query", settings, query=query.format("100s"), time="5000").status == 200
    status, kind, text = error_of(post(FakeQueries(), "query", settings, query=query.format("2000s"), time="5000"))
    assert (status, kind) == (422, "execution")
    assert "query.max_samples" in text


def test_a_subquery_with_too_many_steps_is_refused_before_its_evaluation() -> None:
    queries = FakeQueries(SERIES)
    reply = post(queries, "query", query="sum_over_time((up * time())[50y:1ms])")
    assert error_of(reply)[:2] == (422, "execution")
    assert queries.fragments == []


def test_statistics_are_returned_only_on_request() -> None:
    queries = FakeQueries(SERIES)
    assert "stats" not in data_of(post(queries, "query", query="up"))
    stats = data_of(post(queries, "query_range", query="sum(up)", start="10", end="20", step="5", stats="all"))["stats"]
    assert set(stats) == {"timings", "samples", "strandline"}
    assert set(stats["timings"]) >= {"evalTotalTime", "execTotalTime", "queryPreparationTime", "innerEvalTime"}
    # One group at three steps, and its points in the answer.
    assert stats["samples"] == {"totalQueryableSamples": 4, "peakSamples": 6}
    assert (stats["strandline"]["fragments"], stats["strandline"]["series"]) == (1, 1)


class SecondPerReadingClock(ManualClock):
    """Advances by a second at each reading."""

    def monotonic(self) -> float:
        self.sleep(1)
        return super().monotonic()


@pytest.mark.parametrize(("limit", "is_logged"), [("1s", True), ("1h", False)])
def test_slow_queries_are_logged_with_their_cost(limit: str, *, is_logged: bool) -> None:
    settings = QuerySettings(log_slower_than=limit)

    async def test() -> None:
        async with api_served(FakeQueries(SERIES), settings, clock=SecondPerReadingClock(NOW)) as serving:
            assert (await serving.get("/api/v1/query?query=sum(up[1s:1s])")).status == 400
            assert (await serving.get("/api/v1/query?query=sum(up)&time=15")).status == 200

    with capture_logs() as logs:
        in_loop(test())
    slow = [line for line in logs if line["event"] == "slow or heavy query"]
    assert [(line["query"], line["outcome"], line["samples"]) for line in slow] == (
        [("sum(up[1s:1s])", "bad_data", 0), ("sum(up)", "answered", 2)] if is_logged else []
    )


@pytest.mark.parametrize("query", ["up", "up + on(job) group_left foo"])
def test_a_client_that_disconnects_cancels_its_query(query: str) -> None:
    queries = FakeQueries(SERIES, held=True)

    async def test() -> None:
        async with api_served(queries) as serving:
            request = asyncio.create_task(serving.get("/api/v1/query", params={"query": query}))
            await eventually(queries.holding.is_set)
            request.cancel()
            await eventually(queries.given_up.is_set)

    in_loop(test())


def test_the_first_error_of_a_fragment_ends_the_others() -> None:
    class OneFails(FakeQueries):
        async def evaluate(self, fragment: AnyFragment, limits: EvaluationLimits, scope: QueryScope) -> FragmentResult:
            if "down" in {matcher.value for matcher in fragment.matchers}:
                await eventually(self.holding.is_set)
                raise QueryUnavailable("down")
            return await super().evaluate(fragment, limits, scope)

    queries = OneFails(SERIES, held=True)
    assert error_of(post(queries, "query", query="up + down"))[:2] == (503, "unavailable")
    assert queries.given_up.is_set()


@pytest.mark.parametrize(
    "query",
    [
        r'label_replace(up, "b", "\xff", "job", ".*")',
        r'label_replace(up, "b", "v", "job", "\xff")',
        r'label_replace(up, "b", "v", "\xff", ".*")',
        r'label_join(up, "b", "\xff", "job", "job")',
        r'label_join(up, "b", "-", "\xff")',
        r'count_values("\xff", up)',
        r'up{job="\xff"}',
        r'{"\xff", "\xfe"="a"}',
        r'absent(up{job="\xff"})',
        r'sum by ("\xff") (up)',
        r'up * on("\xff") up',
        r'up + on(job) group_left("\xff") up',
    ],
)
def test_bytes_that_are_not_utf8_are_never_an_internal_error(query: str) -> None:
    reply = post(FakeQueries(SERIES), "query", query=query, time="15")
    assert reply.status in (200, 400, 422)
    orjson.loads(reply.body)
