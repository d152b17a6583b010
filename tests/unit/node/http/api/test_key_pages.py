"""Key pages over HTTP, and the client of bulk jobs that requests them."""

import asyncio
import math
from contextlib import closing

import numpy as np
import pytest

from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.jobs.sending.series import SeriesQuery
from strandline.node.client.addresses import parse_url
from strandline.node.client.errors import QuestionWrong
from strandline.node.client.node_client import NodeClient
from strandline.node.client.series_source import AnswerIncomplete, NodeAccess, NodeSeries
from strandline.node.query.answers import NO_SAMPLE, KeyPageAnswer
from strandline.node.query.queries import QueryScope
from strandline.node.query.shard_requests import KeyPageRequest
from strandline.time_range import TimeRange
from support.fake_queries import FakeQueries
from support.http_servers import api_served, in_loop

pytestmark = pytest.mark.unit

STALE = np.array([0x7FF0000000000002], dtype=np.uint64).view(np.float64)[0]
LABELS = [{"__name__": "up", "host": f'a"\\\n{number}é'} for number in range(6)]
QUERY = SeriesQuery('up{a="b"}', TimeRange(1_000, 2_500), 7, (1 << 128) - 1, 500, newest=True)


class PagedQueries(FakeQueries):
    missing: tuple[int, ...] = ()

    async def key_page(self, request: KeyPageRequest, scope: QueryScope) -> KeyPageAnswer:
        await self._begin(request, scope)
        keys = [encode_part_key(labels) for labels in LABELS]
        offsets = np.cumsum([0, *map(len, keys)])
        return KeyPageAnswer(
            KeyBytes(offsets, np.frombuffer(b"".join(keys), dtype=np.uint8)),
            np.arange(6, dtype=np.uint64),
            np.full(6, 2**64 - 1, dtype=np.uint64),
            np.arange(6) * 10,
            np.arange(6) * 100,
            np.array([1, 2, 3, 4, 5, NO_SAMPLE]),
            np.array([0.1, math.nan, math.inf, -math.inf, STALE, 3.0]),
            more=True,
            warnings=self.warnings,
            unserved=self.missing,
        )


def test_a_page_survives_a_round_trip_over_http() -> None:
    queries = PagedQueries()

    async def test() -> None:
        async with api_served(queries) as serving:
            source = NodeSeries((NodeAccess(parse_url(serving.bound.url)),))
            page = await asyncio.to_thread(source.page, QUERY)
        assert page.more
        assert [series.labels for series in page.series] == LABELS
        assert [series.key for series in page.series] == [(low << 64) + 2**64 - 1 for low in range(6)]
        assert [(series.start, series.end) for series in page.series] == [(10 * at, 100 * at) for at in range(6)]
        assert [series.time for series in page.series] == [1, 2, 3, 4, None, None]
        values = [series.value for series in page.series]
        assert values[0] == 0.1
        assert values[1] is not None
        assert math.isnan(values[1])
        assert values[2:] == [math.inf, -math.inf, None, None]

    in_loop(test())
    (request,) = queries.requests
    assert isinstance(request, KeyPageRequest)
    assert (request.within, request.limit, request.newest) == (TimeRange(1_000, 2_500), 500, True)
    assert (request.first, request.last) == ((0, 7), (2**64 - 1, 2**64 - 1))


def test_an_answer_with_a_warning_is_not_used() -> None:
    async def test() -> None:
        async with api_served(PagedQueries(warnings=("shard 1 is replaying",))) as serving:
            source = NodeSeries((NodeAccess(parse_url(serving.bound.url)),))
            with pytest.raises(AnswerIncomplete, match="shard 1 is replaying"):
                await asyncio.to_thread(source.page, QUERY)

    in_loop(test())


def test_each_partition_must_be_served_by_one_of_the_nodes() -> None:
    first_queries, second_queries = PagedQueries(), PagedQueries()
    first_queries.missing, second_queries.missing = (1, 2), (0, 2)

    async def test() -> None:
        async with api_served(first_queries) as first, api_served(second_queries) as second:
            source = NodeSeries(tuple(NodeAccess(parse_url(served.bound.url)) for served in (first, second)))
            with pytest.raises(AnswerIncomplete, match="serves the partitions 2"):
                await asyncio.to_thread(source.page, QUERY)
            second_queries.missing = (0,)
            assert len((await asyncio.to_thread(source.page, QUERY)).series) == len(LABELS)

    in_loop(test())


@pytest.mark.parametrize(
    ("parameters", "fault"),
    [
        ("match[]=up", 'neither "start" nor "end" is given'),
        ("match[]=up&end=3&first=xyz", 'the parameter "first" is not a hash'),
        ("match[]=up&end=3&last=1" + "0" * 32, 'the parameter "last" is not a hash'),
        ("end=3", 'no "match[]" is given'),
    ],
)
def test_an_invalid_request_gets_an_error_that_names_the_parameter(parameters: str, fault: str) -> None:
    def send(url: str) -> None:
        with closing(NodeClient(parse_url(url))) as client:
            client._request(f"/api/v1/strandline/series?{parameters}", [])

    async def test() -> None:
        async with api_served(PagedQueries()) as serving:
            with pytest.raises(QuestionWrong) as caught:
                await asyncio.to_thread(send, serving.bound.url)
        assert fault in str(caught.value)

    in_loop(test())
