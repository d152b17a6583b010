"""The cache of parsed queries."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from strandline.promql.errors import ParseError
from strandline.promql.parser import parse
from strandline.promql.query_cache import QueryCache

pytestmark = pytest.mark.unit


def test_a_query_is_parsed_once():
    cache = QueryCache()
    assert cache.parse("sum(up)") == parse("sum(up)")
    assert cache.parse("sum(up)") is cache.parse("sum(up)")


def test_the_least_recently_used_query_is_evicted():
    cache = QueryCache(max_queries=2)
    first, second = cache.parse("a"), cache.parse("b")
    assert cache.parse("a") is first
    cache.parse("c")
    assert cache.parse("a") is first
    assert cache.parse("b") is not second
    assert len(cache) == 2


def test_long_queries_evict_several_and_queries_above_the_limit_are_not_cached():
    cache = QueryCache(max_characters=10)
    kept = cache.parse("aaaa"), cache.parse("bbbb")
    assert (cache.parse("aaaa"), cache.parse("bbbb")) == kept
    cache.parse("c" * 10)
    assert len(cache) == 1
    cache.parse("d" * 11)
    assert len(cache) == 1


def test_errors_are_raised_each_time_and_not_cached():
    cache = QueryCache()
    for _ in range(2):
        with pytest.raises(ParseError):
            cache.parse("sum(")
    assert len(cache) == 0


def test_threads_may_share_it():
    cache = QueryCache(max_queries=5)
    queries = [f"metric_{position % 7}" for position in range(2000)]
    with ThreadPoolExecutor(4) as pool:
        names = [tree.name for tree in pool.map(cache.parse, queries)]
    assert names == queries
    assert len(cache) == 5
