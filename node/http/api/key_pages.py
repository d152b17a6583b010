"""`/api/v1/strandline/series`: key pages, for bulk jobs."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import orjson

from strandline.node.http.api.json_pieces import series_json
from strandline.node.http.api.names import scope_of
from strandline.node.http.api.sending import Answer, respond
from strandline.node.http.errors import BadParameter
from strandline.node.http.parameters import Parameters, parameters_of
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse
from strandline.node.http.routes import Access, Route
from strandline.node.query.answers import NO_SAMPLE, KeyPageAnswer
from strandline.node.query.queries import NodeQueries
from strandline.node.query.shard_requests import KeyPageRequest
from strandline.node.settings.http_sections import QuerySettings
from strandline.node.workers import Workers
from strandline.promql.values import STALE_BITS

MAX_KEYS = 20_000
_BITS = 64
_HASH_BITS = 2 * _BITS
# Bytes of a series besides its labels: six columns.
_SERIES_BYTES = 48


class KeyPagesApi:
    """Key pages. For one event loop."""

    def __init__(self, queries: NodeQueries, workers: Workers, settings: QuerySettings) -> None:
        self._queries, self._workers, self._settings = queries, workers, settings

    def routes(self) -> Sequence[Route]:
        """The path of key pages."""
        return (Route(("GET", "POST"), "/api/v1/strandline/series", self.series, Access.READ),)

    async def series(self, request: Request) -> AnyResponse:
        """`match[]`, `start`, `end`, `first`, `last` (hashes, both included), `limit`, `newest=true`."""
        given = await parameters_of(request)
        selectors, within = given.selectors(required=True), given.time_range()
        if within is None:
            raise BadParameter('neither "start" nor "end" is given', remedy="Give a time range")
        first, last = _hash(given, "first", 0), _hash(given, "last", (1 << _HASH_BITS) - 1)
        limit, newest = given.limit(MAX_KEYS), given.text("newest") == "true"
        shard_request = KeyPageRequest(selectors, within, first, last, limit, newest, self._settings.max_samples)
        found = await self._queries.key_page(shard_request, scope_of(request, given, self._settings))
        size = len(found.keys.data) + _SERIES_BYTES * len(found.keys)
        return await respond(request, self._workers, Answer(_page_json(found), size, found.warnings))


def _hash(given: Parameters, name: str, default: int) -> tuple[int, int]:
    """A 128-bit hash in hexadecimal digits, as two words."""
    written = given.text(name)
    try:
        number = default if written is None else int(written, 16)
    except ValueError:
        number = -1
    if not 0 <= number < 1 << _HASH_BITS:
        raise BadParameter(f'the parameter "{name}" is not a hash of 32 hexadecimal digits: {(written or "")[:40]!r}')
    return number >> _BITS, number & ((1 << _BITS) - 1)


def _page_json(found: KeyPageAnswer) -> Iterator[bytes]:
    """The columns labels, key, start, end, and the newest sample's time and value, null without one; and the partitions
    that the node does not serve.
    """
    hashes = [f"{low:016x}{high:016x}" for low, high in zip(found.low.tolist(), found.high.tolist(), strict=True)]
    # A staleness marker is not a value: the series has ended.
    is_there = (found.time != NO_SAMPLE) & (found.value.view(np.uint64) != STALE_BITS)
    times = [time if there else None for time, there in zip(found.time.tolist(), is_there.tolist(), strict=True)]
    values = [
        None if time is None else _written(value) for time, value in zip(times, found.value.tolist(), strict=True)
    ]
    columns = {"key": hashes, "start": found.start.tolist(), "end": found.end.tolist(), "time": times, "value": values}
    texts = [b"%b:%b," % (orjson.dumps(name), orjson.dumps(column)) for name, column in columns.items()]
    columns_of_page = b"".join(texts)
    fields = b'"more":%b,"unserved":%b,' % (orjson.dumps(found.more), orjson.dumps(found.unserved))
    return chain((b"{", fields, columns_of_page, b'"labels":'), series_json(found.keys), (b"}",))


def _written(value: float) -> str:
    """A value as Prometheus' API writes it, including those that JSON numbers can't represent."""
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
