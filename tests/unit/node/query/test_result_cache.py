"""The size and the eviction of a shard's result cache."""

import threading

import numpy as np
import pytest
from pyroaring import BitMap

from strandline.index.key_bytes import KeyBytes
from strandline.node.query.result_cache import CachedResult, ResultCache
from strandline.node.shard.pinned_content import PinnedContent
from strandline.promql.evaluation.partials import Partial
from strandline.promql.values import Grid, Vector
from strandline.time_range import ALL_TIMES

pytestmark = pytest.mark.unit

CONTENT = PinnedContent("reader", ALL_TIMES, frozenset(), (), 0)


def result(steps: int) -> CachedResult:
    keys = KeyBytes(np.array([0, 3]), np.zeros(3, dtype=np.uint8))
    return CachedResult(Grid(0, 1, steps), Partial(Vector(keys, np.zeros((1, steps)))), BitMap([1]), CONTENT)


SIZE = result(1_000).size + 1


def test_a_result_is_counted_with_its_cells() -> None:
    assert 8_000 < SIZE < 12_000
    assert result(2_000).size - result(1_000).size == 8_000


def test_the_least_recently_used_result_is_evicted_first() -> None:
    cache = ResultCache(5 * SIZE)
    for key in (b"a", b"b", b"c", b"d", b"e"):
        cache.put(key, result(1_000))
    assert cache.figures().bytes == 5 * SIZE
    assert cache.get(b"a") is not None
    cache.put(b"f", result(1_000))
    assert cache.get(b"b") is None
    assert cache.get(b"a") is not None
    assert cache.figures().bytes == 5 * SIZE


def test_a_newer_result_replaces_the_earlier_one() -> None:
    cache = ResultCache(5 * SIZE)
    cache.put(b"a", result(1_000))
    newer = result(900)
    cache.put(b"a", newer)
    assert cache.get(b"a") is newer
    assert cache.figures().bytes == newer.size + 1
    # A result that does not fit removes the older one.
    cache.put(b"a", result(5_000))
    assert cache.get(b"a") is None
    assert cache.figures().bytes == 0


def test_clear_removes_all_results() -> None:
    cache = ResultCache(5 * SIZE)
    cache.put(b"a", result(1_000))
    cache.clear()
    assert (cache.get(b"a"), cache.figures().bytes) == (None, 0)


def test_outcomes_are_counted() -> None:
    cache = ResultCache(1)
    for cached_steps in (0, 1, 59, 60, 0, 0):
        cache.count(cached_steps, 60)
    figures = cache.figures()
    assert (figures.hits, figures.partial_hits, figures.misses) == (1, 2, 3)


def test_results_are_put_by_several_threads_concurrently() -> None:
    cache, cached = ResultCache(7 * SIZE), result(1_000)

    def work(number: int) -> None:
        for iteration in range(500):
            key = bytes([(number + iteration) % 11])
            cache.get(key)
            cache.put(key, cached)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.figures().bytes == 7 * SIZE
