"""The lookups that are measured, as requests of Prometheus' API.

A lookup's selector is different in each request, so that caches of answers have no effect. Two lookups never use the
same selector of one key, since VictoriaMetrics caches the series of a selector across request types. For values that
10,000 keys share, this is not possible, because there are too few.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from strandline.node.bench.fleet import SHARED_BY_1K, SHARED_BY_10K
from strandline.node.bench.query_fleet import RACKS, SLOTS, wider_labels_of

LIMIT = 10_000
# A large prime: consecutive requests get distant values, and all values differ.
_STRIDE = 7_919
# An offset that is larger than the request indices of any other lookup.
_OFFSET = 400_000


@dataclass(frozen=True, slots=True)
class LookupScope:
    """The number of series, and the time range of all requests in seconds."""

    series: int
    start: int
    end: int

    def target(self, path: str, *selectors: str, limit: int | None = None) -> str:
        """The path and the parameters of a request."""
        parameters = [("match[]", selector) for selector in selectors]
        parameters += [("start", str(self.start)), ("end", str(self.end))]
        parameters += [("limit", str(limit))] if limit is not None else []
        return f"{path}?{urlencode(parameters)}"

    def sharing(self, label: str, index: int, shared_by: int) -> str:
        """A selector of a label value that `shared_by` series have; different for each index."""
        values = max(1, self.series // shared_by)
        number = index * _STRIDE % values * shared_by
        return f'{{{label}="{dict(wider_labels_of(number))[label]}"}}'


@dataclass(frozen=True, slots=True)
class Lookup:
    """A lookup, and its request for each index."""

    what: str
    request: Callable[[int], str]


def lookups(scope: LookupScope) -> list[Lookup]:
    """The lookups that are measured, the cheapest first."""
    series, labels = "/api/v1/series", "/api/v1/labels"

    def values(label: str) -> str:
        return f"/api/v1/label/{quote(label)}/values"

    def by_key(index: int) -> str:
        return scope.sharing("pod", index, 1)

    def by_1k(index: int) -> str:
        return scope.sharing("instance", index, SHARED_BY_1K)

    def by_10k(index: int) -> str:
        return scope.sharing("namespace", index, SHARED_BY_10K)

    return [
        Lookup("series, 1 key", lambda index: scope.target(series, by_key(index))),
        Lookup("series, 1 k keys", lambda index: scope.target(series, by_1k(index))),
        Lookup("series, 10 k keys", lambda index: scope.target(series, by_10k(index))),
        Lookup("label names", lambda _: scope.target(labels)),
        Lookup("label names, of 1 key", lambda index: scope.target(labels, by_key(index + _OFFSET))),
        Lookup("label names, of 10 k keys", lambda index: scope.target(labels, by_10k(index))),
        Lookup(f"values, {RACKS} of them", lambda _: scope.target(values("rack"))),
        Lookup(f"values, {SLOTS // 1000} k of them", lambda _: scope.target(values("slot"))),
        Lookup("values, one a key, limit 10 k", lambda _: scope.target(values("pod"), limit=LIMIT)),
        Lookup("values, 10 among 10 k keys", lambda index: scope.target(values("instance"), by_10k(index))),
        Lookup("values, 10 k among 10 k keys", lambda index: scope.target(values("pod"), by_10k(index))),
    ]
