"""Series, label names and label values over HTTP."""

import asyncio
import gzip
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from strandline.index.matchers import InvalidMatcher, Matcher, MatchOp
from strandline.index.pylucene.failures import RegexTooCostly
from strandline.node.query.queries import QueryCancelled, QueryTimedOut, QueryTooLarge, QueryUnavailable
from strandline.node.query.shard_requests import LabelNamesRequest, LabelValuesRequest, SeriesRequest
from strandline.node.settings.http_sections import QuerySettings
from strandline.time_range import TimeRange
from support.fake_queries import FakeQueries
from support.http_servers import Reply, api_served, in_loop

pytestmark = pytest.mark.unit

A = {"__name__": "up", "job": "a", "instance": "1"}
B = {"__name__": "up", "job": "b", "Größe": "é😀"}
C = {"__name__": "down", "job": "a", "dotted.name": "x/y"}
SERIES = [(A, [(1000, 1.0)]), (B, [(2000, 1.0)]), (C, [(3000, 1.0)])]
UP = (Matcher("__name__", MatchOp.EQUAL, "up"),)


def get(queries: FakeQueries, path: str, settings: QuerySettings | None = None, **parameters: Any) -> Reply:
    async def test() -> Reply:
        async with api_served(queries, settings) as serving:
            return await serving.get(path, **parameters)

    return in_loop(test())


def post(queries: FakeQueries, path: str, form: list[tuple[str, str]]) -> Reply:
    async def test() -> Reply:
        async with api_served(queries) as serving:
            return await serving.post(path, data=form)

    return in_loop(test())


def data_of(reply: Reply) -> Any:
    body = orjson.loads(reply.body)
    assert (reply.status, body["status"]) == (200, "success")
    assert reply.headers["Content-Type"] == "application/json"
    assert "warnings" not in body
    return body["data"]


def test_series_are_listed_with_their_labels_in_order() -> None:
    reply = get(FakeQueries(SERIES), "/api/v1/series", params=[("match[]", "up"), ("match[]", '{job="a"}')])
    assert data_of(reply) == [B, C, A]
    assert reply.body.startswith('{"status":"success","data":[{"Größe":"é😀","__name__":"up","job":"b"}'.encode())


def test_series_may_be_requested_by_a_form() -> None:
    assert data_of(post(FakeQueries(SERIES), "/api/v1/series", [("match[]", "down")])) == [C]


def test_selectors_time_and_limit_are_passed_on() -> None:
    queries = FakeQueries(SERIES)
    get(queries, "/api/v1/series?match[]=up&start=1.5&end=1970-01-01T00:00:02Z&limit=7")
    get(queries, "/api/v1/labels")
    get(queries, "/api/v1/label/job/values?match[]=up&limit=0")
    assert queries.requests == [
        SeriesRequest((UP,), TimeRange(1500, 2000), 7),
        LabelNamesRequest((), None, 1_000_000),
        LabelValuesRequest("job", (UP,), None, 1_000_000),
    ]


def test_label_names_are_listed() -> None:
    names = ["Größe", "__name__", "dotted.name", "instance", "job"]
    assert data_of(get(FakeQueries(SERIES), "/api/v1/labels")) == names
    assert data_of(post(FakeQueries(SERIES), "/api/v1/labels", [("match[]", "down")])) == [
        "__name__", "dotted.name", "job",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("job/values", ["a", "b"]),
        ("nothing/values", []),
        ("U__dotted_2e_name/values", ["x/y"]),
        ("dotted.name/values", ["x/y"]),
        (quote("Größe") + "/values", ["é😀"]),
        ("job/values?match[]=up{instance='1'}", ["a"]),
    ],
)
def test_label_values_are_listed(path: str, expected: list[str]) -> None:
    assert data_of(get(FakeQueries(SERIES), f"/api/v1/label/{path}")) == expected


def test_a_name_with_a_slash_may_be_escaped() -> None:
    queries = FakeQueries([({"a/b": "c"}, [])])

    async def test() -> bytes:
        async with api_served(queries) as serving:
            return await serving.raw(
                b"GET /api/v1/label/a%2Fb/values HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )

    assert in_loop(test()).endswith(b'{"status":"success","data":["c"]}')


def test_a_name_that_is_no_utf8_is_refused() -> None:
    async def test() -> bytes:
        async with api_served(FakeQueries(SERIES)) as serving:
            return await serving.raw(
                b"GET /api/v1/label/%ff/values HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )

    answer = in_loop(test())
    assert answer.splitlines()[0] == b"HTTP/1.1 400 Bad Request"
    assert b"the label's name is not UTF-8" in answer


@pytest.mark.parametrize(
    "path", ["/api/v1/series?match[]={__name__!=''}", "/api/v1/labels?", "/api/v1/label/job/values?"]
)
def test_a_truncated_list_has_a_warning(path: str) -> None:
    complete = orjson.loads(get(FakeQueries(SERIES), path).body)
    truncated = orjson.loads(get(FakeQueries(SERIES), f"{path}&limit=1").body)
    assert truncated["data"] == complete["data"][:1]
    assert "warnings" not in complete
    assert truncated["warnings"] == ["results truncated due to limit: there are more than the 1 that are listed"]


def test_no_list_is_longer_than_the_settings_allow() -> None:
    queries = FakeQueries(SERIES)
    reply = get(queries, "/api/v1/labels?limit=100", QuerySettings(max_names=2))
    assert len(orjson.loads(reply.body)["data"]) == 2


def test_warnings_are_passed_on_each_once() -> None:
    reply = get(FakeQueries(SERIES, warnings=("shard 1 is replaying", "shard 1 is replaying")), "/api/v1/labels")
    assert orjson.loads(reply.body)["warnings"] == ["shard 1 is replaying"]


@pytest.mark.parametrize(
    "path",
    ["/api/v1/series", "/api/v1/series?match[]={}", "/api/v1/series?match[]=up&start=x", "/api/v1/labels?limit=-1",
     "/api/v1/labels?start=2&end=1", "/api/v1/label/job/values?match[]={", "/api/v1/labels?timeout=-1"],
)  # fmt: skip
def test_invalid_parameters_are_bad_data_without_a_request_to_shards(path: str) -> None:
    queries = FakeQueries(SERIES)
    reply = get(queries, path)
    body = orjson.loads(reply.body)
    assert (reply.status, body["status"], body["errorType"]) == (400, "error", "bad_data")
    assert queries.requests == []


@pytest.mark.parametrize(
    ("failure", "status", "kind"),
    [
        (InvalidMatcher("a is no expression"), 400, "bad_data"),
        (RegexTooCostly("it examined too much", 5, 6), 422, "execution"),
        (QueryTooLarge("too many series", remedy="Ask for less"), 422, "execution"),
        (QueryTimedOut("too long"), 503, "timeout"),
        (QueryUnavailable("no shard answers"), 503, "unavailable"),
        (QueryCancelled("given up"), 499, "canceled"),
    ],
)
def test_failures_of_queries_have_prometheus_status_codes(failure: Exception, status: int, kind: str) -> None:
    reply = get(FakeQueries(failure=failure), "/api/v1/labels")
    body = orjson.loads(reply.body)
    assert (reply.status, body["errorType"], body["error"]) == (status, kind, str(failure))


def test_a_large_answer_is_compressed_for_clients_that_accept_it() -> None:
    series = [({"__name__": "up", "n": str(number)}, []) for number in range(1000)]
    queries = FakeQueries(series)

    async def test() -> tuple[Reply, Reply]:
        async with api_served(queries) as serving:
            serving.client._auto_decompress = False
            compressed = await serving.get("/api/v1/series?match[]=up", headers={"Accept-Encoding": "gzip, deflate"})
            uncompressed = await serving.get("/api/v1/series?match[]=up", headers={"Accept-Encoding": "gzip;q=0"})
            return compressed, uncompressed

    compressed, uncompressed = in_loop(test())
    assert compressed.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in uncompressed.headers
    assert gzip.decompress(compressed.body) == uncompressed.body
    assert len(compressed.body) < len(uncompressed.body) / 3
    assert compressed.headers["Vary"] == "Accept-Encoding"


def test_a_small_answer_is_not_compressed() -> None:
    reply = get(FakeQueries(SERIES), "/api/v1/labels", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in reply.headers


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_an_answer_of_several_blocks_is_complete(encoding: str) -> None:
    series = [({"__name__": "up", "n": f"{number:06}", "long": "x" * 5000}, []) for number in range(700)]
    reply = get(
        FakeQueries(series, warnings=("w",)), "/api/v1/series?match[]=up", headers={"Accept-Encoding": encoding}
    )
    assert reply.headers["Transfer-Encoding"] == "chunked"
    body = orjson.loads(reply.body)
    assert body["data"] == [labels for labels, _ in series]
    assert body["warnings"] == ["w"]


def test_a_query_is_cancelled_when_its_client_disconnects() -> None:
    queries = FakeQueries(SERIES, held=True)

    async def test() -> None:
        async with api_served(queries) as serving:
            _, writer = await asyncio.open_connection(serving.bound.host, serving.bound.port)
            writer.write(b"GET /api/v1/labels HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await asyncio.to_thread(queries.holding.wait, 30)
            writer.close()
            await writer.wait_closed()
            assert await asyncio.to_thread(queries.given_up.wait, 30)

    in_loop(test())


def test_a_query_ends_at_its_clients_timeout() -> None:
    reply = get(FakeQueries(SERIES, held=True), "/api/v1/labels?timeout=20ms")
    body = orjson.loads(reply.body)
    assert (reply.status, body["errorType"]) == (503, "timeout")
    assert "took longer than 0.02 s" in body["error"]
    assert "timeout= of the request" in body["error"], "the client can change that"


@pytest.mark.parametrize("parameters", ["", "?timeout=1h"])
def test_a_query_that_takes_longer_than_the_settings_allow_names_the_setting(parameters: str) -> None:
    settings = QuerySettings.model_validate({"timeout": "100ms"})
    reply = get(FakeQueries(SERIES, held=True), f"/api/v1/labels{parameters}", settings)
    assert "raise query.timeout" in orjson.loads(reply.body)["error"]


def test_a_clients_timeout_can_not_exceed_the_setting() -> None:
    queries, settings = FakeQueries(SERIES), QuerySettings.model_validate({"timeout": "7s"})
    for parameters in ("", "?timeout=3", "?timeout=1h"):
        get(queries, f"/api/v1/labels{parameters}", settings)
    assert queries.timeouts == [7, 3, 7]
