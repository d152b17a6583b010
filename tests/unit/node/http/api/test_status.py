"""`/api/v1/status/...`, and the paths whose answers are always empty."""

from typing import Any

import orjson
import pytest

from strandline.clock import ManualClock
from strandline.node.query.shard_requests import CardinalityRequest
from strandline.node.shard.bucket_report import BucketFigures
from strandline.time_range import TimeRange
from support.fake_queries import FakeQueries
from support.http_servers import Reply, api_served, in_loop

pytestmark = pytest.mark.unit

SERIES = [
    ({"__name__": "up", "job": "alpha"}, []),
    ({"__name__": "up", "job": "b"}, []),
    ({"__name__": "down", "job": "b"}, []),
]
BUCKETS = tuple(
    BucketFigures(0, bucket, bucket * 1000, (bucket + 1) * 1000, 1, 1, 1, 1, "stored") for bucket in (5, 6, 7)
)


def get(path: str, queries: FakeQueries | None = None) -> Reply:
    async def test() -> Reply:
        async with api_served(queries or FakeQueries(SERIES), clock=ManualClock(1_500)) as serving:
            return await serving.get(f"/api/v1/{path}")

    return in_loop(test())


def data_of(reply: Reply) -> Any:
    body = orjson.loads(reply.body)
    assert (reply.status, body["status"]) == (200, "success")
    return body["data"]


def named(*pairs: tuple[str, int]) -> list[dict[str, object]]:
    return [{"name": name, "value": value} for name, value in pairs]


def test_cardinality_has_prometheus_names() -> None:
    assert data_of(get("status/tsdb", FakeQueries(SERIES, buckets=BUCKETS))) == {
        "headStats": {"numSeries": 3, "numLabelPairs": 4, "chunkCount": 0, "minTime": 5000, "maxTime": 8000},
        "seriesCountByMetricName": named(("up", 2), ("down", 1)),
        "labelValueCountByLabelName": named(("__name__", 2), ("job", 2)),
        # up and down; alpha and b.
        "memoryInBytesByLabelName": named(("__name__", 6), ("job", 6)),
        "seriesCountByLabelValuePair": named(("__name__=up", 2), ("job=b", 2), ("__name__=down", 1), ("job=alpha", 1)),
    }


def test_figures_that_are_estimates_are_marked() -> None:
    queries = FakeQueries(SERIES)
    assert "warnings" not in orjson.loads(get("status/tsdb", queries).body)
    queries.estimated_labels = tuple(f"label_{number:02}" for number in range(12))
    queries.estimated_series = True
    series, labels = orjson.loads(get("status/tsdb", queries).body)["warnings"]
    assert "number of series is an estimate" in series
    assert "label_00, label_01" in labels
    assert "label_09 and 2 more are estimates" in labels


def test_tops_have_the_requested_number_of_entries() -> None:
    data = data_of(get("status/tsdb?limit=1"))
    assert data["seriesCountByMetricName"] == named(("up", 2))
    assert data["labelValueCountByLabelName"] == named(("__name__", 2))


def test_ten_entries_are_the_default_and_selectors_and_times_are_passed_on() -> None:
    queries = FakeQueries(SERIES)
    get("status/tsdb", queries)
    get("status/tsdb?start=1&end=2&match[]=up&limit=3", queries)
    first, second = [request for request in queries.requests if isinstance(request, CardinalityRequest)]
    assert first == CardinalityRequest((), None, 10)
    assert (second.within, second.limit, str(second.selectors[0][0])) == (TimeRange(1000, 2000), 3, '__name__="up"')


@pytest.mark.parametrize("limit", ["0", "-1", "x"])
def test_a_limit_of_zero_is_refused(limit: str) -> None:
    assert get(f"status/tsdb?limit={limit}").status == 400


def test_an_index_without_series_has_the_times_of_prometheus() -> None:
    assert data_of(get("status/tsdb", FakeQueries()))["headStats"] == {
        "numSeries": 0, "numLabelPairs": 0, "chunkCount": 0, "minTime": 2**63 - 1, "maxTime": -(2**63),
    }  # fmt: skip


def test_cardinality_has_warnings() -> None:
    assert orjson.loads(get("status/tsdb", FakeQueries(SERIES, warnings=("w",))).body)["warnings"] == ["w"]


def test_build_info_has_the_version_that_grafana_needs() -> None:
    data = data_of(get("status/buildinfo"))
    assert data["version"].startswith("3.")
    assert data["revision"].startswith("strandline-")


def test_runtime_info_has_the_start_time() -> None:
    assert data_of(get("status/runtimeinfo"))["startTime"] == "1970-01-01T00:00:01.500Z"


def test_apis_without_stored_data_return_empty_lists() -> None:
    assert data_of(get("metadata?limit=1")) == {}
    assert data_of(get("query_exemplars?query=up&start=0&end=1")) == []
    # Grafana sends these times in milliseconds.
    assert data_of(get("query_exemplars?query=rate(x[5m])&start=1794911400000&end=1794916800000")) == []
    assert data_of(get("rules?type=alert")) == {"groups": []}
    assert data_of(get("alerts")) == {"alerts": []}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("metadata?limit=many", '"limit" is not a non-negative integer'),
        ("metadata?limit_per_metric=-1", '"limit_per_metric" is not a non-negative integer'),
        ("query_exemplars", '"query" is missing'),
        ("query_exemplars?query=up&start=yesterday", '"start" is neither seconds'),
        ("query_exemplars?query=up&start=2&end=1", '"end" lies before "start"'),
        ("rules?type=other", '"type" is neither "alert" nor "record"'),
        ("rules?match[]={", '"match[]"'),
    ],
)
def test_invalid_parameters_of_empty_answers_are_refused(path: str, words: str) -> None:
    reply = get(path)
    assert reply.status == 400
    assert words in orjson.loads(reply.body)["error"]
