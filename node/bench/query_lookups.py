"""The look-ups that are measured, as requests of Prometheus' API.

Where a look-up has a selector it is another one each time, so that no cache of answers can help either side. Those of
one key are not asked by two look-ups either: VictoriaMetrics keeps what a selector matches, whatever is asked of it. Of
the values that ten thousand keys share there are too few for that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from strandline.node.bench.fleet import SHARED_BY_1K, SHARED_BY_10K
from strandline.node.bench.query_fleet import RACKS, SLOTS, wider_labels_of

LIMIT = 10_000
# Far apart, and sharing no factor with what is asked for: so that each one is another one.
_STRIDE = 7_919
# In indices: behind all those of another look-up.
_APART = 400_000


@dataclass(frozen=True, slots=True)
class LookupScope:
    """A time in seconds, the same in all requests; a label value that series share is chosen among so many series."""

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
        """A selector by the value of a label that so many series share: another one at each index."""
        values = max(1, self.series // shared_by)
        number = index * _STRIDE % values * shared_by
        return f'{{{label}="{dict(wider_labels_of(number))[label]}"}}'


@dataclass(frozen=True, slots=True)
class Lookup:
    """A look-up, and its request at each index."""

    what: str
    request: Callable[[int], str]


def lookups(scope: LookupScope) -> list[Lookup]:
    """What is measured, the cheapest first."""
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
        Lookup("label names, of 1 key", lambda index: scope.target(labels, by_key(index + _APART))),
        Lookup("label names, of 10 k keys", lambda index: scope.target(labels, by_10k(index))),
        Lookup(f"values, {RACKS} of them", lambda _: scope.target(values("rack"))),
        Lookup(f"values, {SLOTS // 1000} k of them", lambda _: scope.target(values("slot"))),
        Lookup("values, one a key, limit 10 k", lambda _: scope.target(values("pod"), limit=LIMIT)),
        Lookup("values, 10 among 10 k keys", lambda index: scope.target(values("instance"), by_10k(index))),
        Lookup("values, 10 k among 10 k keys", lambda index: scope.target(values("pod"), by_10k(index))),
    ]
