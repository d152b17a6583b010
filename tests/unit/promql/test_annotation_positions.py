"""Annotations have the position of the argument that they concern, as in Prometheus."""

import pytest

from strandline.promql.local import LocalEngine, split
from strandline.promql.plan.query_times import QueryTimes

pytestmark = pytest.mark.unit

BUCKETS = [("1", 5.0), ("2", 3.0), ("+Inf", 4.0), ("wide", 1.0)]


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize(
    ("query", "warnings", "infos"),
    [
        ("histogram_quantile(2, b)", ["got 2 (1:20)", 'value of "wide" (1:23)'], []),
        ("histogram_quantile((.5), ((b)))", ['value of "wide" (1:28)'], ["(1:28)"]),
        ("histogram_fraction(0, 1, b)", ['value of "wide" (1:26)'], []),
        # In the shards and, because the parameter is read from a series, in the front.
        ("quantile by (le) (3, rate(b[5m]))", ["got 3 (1:19)"], ['_bucket: "b" (1:27)']),
        ('quantile(scalar(b{le="2"}), b)', ["got 3 (1:10)"], []),
    ],
)
def test_positions(shards: int, query: str, warnings: list[str], infos: list[str]) -> None:
    series = [({"__name__": "b", "le": le}, [(0, value), (1000, value)]) for le, value in BUCKETS]
    found = LocalEngine(split(series, shards)).query(query, QueryTimes.instant(1000)).annotations
    for shown, ends in ((found.warnings(query), warnings), (found.infos(query), infos)):
        assert len(shown) == len(ends), shown
        assert all(any(text.endswith(end) for text in shown) for end in ends), shown
