"""The cache of label names and values, over HTTP."""

from dataclasses import replace

import pytest

from strandline.node.query.index_version import IndexVersion
from strandline.node.query.shard_requests import LabelNamesRequest, LabelValuesRequest
from strandline.node.settings.http_sections import QuerySettings
from strandline.time_range import TimeRange
from support.fake_queries import FakeQueries
from support.http_servers import Reply, Served, api_served, in_loop

pytestmark = pytest.mark.unit

SERIES = [({"__name__": "up", "job": job}, [(1000, 1.0), (9000, 1.0)]) for job in ("a", "b")]
VERSION = IndexVersion((1, 2), last_start=1000, first_end=9000)
MOST = QuerySettings().max_names
LABELS, VALUES = "/api/v1/labels", "/api/v1/label/job/values"


def replies_to(queries: FakeQueries, *paths: str, encoding: str = "identity") -> list[Reply]:
    async def test() -> list[Reply]:
        async with api_served(queries) as serving:
            return [await get(serving, path, encoding) for path in paths]

    return in_loop(test())


async def get(serving: Served, path: str, encoding: str = "identity") -> Reply:
    reply = await serving.get(path, headers={"Accept-Encoding": encoding})
    assert reply.status == 200
    return reply


@pytest.mark.parametrize("path", [LABELS, VALUES])
def test_a_list_of_all_series_is_requested_once_and_cache_hits_are_counted(path: str) -> None:
    queries = FakeQueries(SERIES, version=VERSION)
    first, second, third = replies_to(queries, path, path, f"{path}?limit=0")
    assert first.body == second.body == third.body
    assert len(queries.requests) == 1
    assert queries.cached_answers == queries.requests * 2


def test_lists_of_other_labels_limits_and_encodings_are_other_lists() -> None:
    queries = FakeQueries(SERIES, version=VERSION)
    replies_to(queries, LABELS, VALUES, "/api/v1/label/__name__/values", f"{LABELS}?limit=5", f"{VALUES}?limit=5")
    assert len(queries.requests) == 5
    assert queries.cached_answers == []


def test_a_list_is_cached_compressed_for_clients_that_accept_it() -> None:
    series = [({"job": f"{number:05}"}, [(1000, 1.0), (9000, 1.0)]) for number in range(2000)]
    queries = FakeQueries(series, version=VERSION)

    async def test() -> list[Reply]:
        async with api_served(queries) as serving:
            return [await get(serving, VALUES, encoding) for encoding in ("gzip", "identity") * 2]

    replies = in_loop(test())
    assert [reply.headers.get("Content-Encoding") for reply in replies] == ["gzip", None, "gzip", None]
    assert len({reply.body for reply in replies}) == 1
    assert (len(queries.requests), len(queries.cached_answers)) == (2, 2)


def test_with_another_index_version_the_list_is_requested_again() -> None:
    queries = FakeQueries(SERIES, version=VERSION)

    async def test() -> list[Reply]:
        async with api_served(queries) as serving:
            before = await get(serving, VALUES)
            queries.stored += [({"job": "c"}, [(1000, 1.0), (9000, 1.0)])]
            same_version = await get(serving, VALUES)
            queries.version = replace(VERSION, numbers=(1, 3))
            after = await get(serving, VALUES)
            queries.version = VERSION
            restored = await get(serving, VALUES)
            return [before, same_version, after, restored]

    before, same_version, after, restored = in_loop(test())
    assert before.body == same_version.body == b'{"status":"success","data":["a","b"]}'
    assert after.body == restored.body == b'{"status":"success","data":["a","b","c"]}'
    assert (len(queries.requests), len(queries.cached_answers)) == (3, 1)


def test_without_a_version_lists_are_not_cached() -> None:
    queries = FakeQueries(SERIES, version=VERSION)

    async def test() -> None:
        async with api_served(queries) as serving:
            queries.version = None
            await get(serving, LABELS)
            queries.version = VERSION
            await get(serving, LABELS)
            queries.version = None
            await get(serving, LABELS)

    in_loop(test())
    assert len(queries.requests) == 3
    assert queries.cached_answers == []


def test_a_list_for_a_range_in_which_all_series_exist_is_that_of_all_series() -> None:
    queries = FakeQueries(SERIES, version=VERSION)
    replies_to(queries, VALUES, f"{VALUES}?start=1&end=9", f"{VALUES}?start=9&end=20", f"{VALUES}?end=1")
    assert len(queries.requests) == 1
    assert [request.within for request in queries.cached_answers] == [
        TimeRange(1000, 9000),
        TimeRange(9000, 20_000),
        queries.cached_answers[2].within,
    ]


@pytest.mark.parametrize("parameters", ["start=9.001&end=20", "end=0.999", "match[]=up"])
def test_a_list_of_some_series_is_requested_each_time(parameters: str) -> None:
    queries = FakeQueries(SERIES, version=VERSION)
    replies_to(queries, VALUES, f"{VALUES}?{parameters}", f"{VALUES}?{parameters}")
    assert len(queries.requests) == 3
    assert queries.cached_answers == []


def test_lists_with_a_warning_empty_ones_and_those_of_some_series_are_not_cached() -> None:
    for queries, path in (
        (FakeQueries(SERIES, version=VERSION, warnings=("shard 1 is away",)), LABELS),
        (FakeQueries(SERIES, version=VERSION), f"{VALUES}?limit=1"),
        (FakeQueries(SERIES, version=VERSION), "/api/v1/label/none/values"),
    ):
        replies_to(queries, path, path)
        assert len(queries.requests) == 2, path
        assert queries.cached_answers == []


def test_the_list_of_a_node_that_serves_a_part_is_cached_with_its_warning() -> None:
    elsewhere = ("this node does not serve partition 1 of 2: the answer lacks the series there",)
    queries = FakeQueries(SERIES, version=VERSION, warnings=elsewhere)
    queries.unserved_partitions = elsewhere
    first, second = replies_to(queries, LABELS, LABELS)
    assert first.body == second.body
    assert b"does not serve partition 1" in first.body
    assert (len(queries.requests), len(queries.cached_answers)) == (1, 1)


def test_head_is_answered_from_a_cached_list() -> None:
    queries = FakeQueries(SERIES, version=VERSION)

    async def test() -> tuple[Reply, Reply]:
        async with api_served(queries) as serving:
            return await get(serving, VALUES), await serving.head(VALUES, headers={"Accept-Encoding": "identity"})

    complete, head = in_loop(test())
    assert (head.status, head.body) == (200, b"")
    assert int(head.headers["Content-Length"]) == len(complete.body)
    assert queries.cached_answers == [LabelValuesRequest("job", (), None, MOST)]


def test_the_same_form_posted_is_answered_from_the_list_of_the_url() -> None:
    queries = FakeQueries(SERIES, version=VERSION)

    async def test() -> tuple[Reply, Reply]:
        async with api_served(queries) as serving:
            return await serving.get(LABELS), await serving.post(LABELS, data={"limit": "0"})

    by_url, by_form = in_loop(test())
    assert by_url.body == by_form.body
    assert queries.cached_answers == [LabelNamesRequest((), None, MOST)]
