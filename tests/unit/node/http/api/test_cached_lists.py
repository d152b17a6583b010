"""The cache of lists: for one version, and within a limit."""

import pytest

from strandline.node.http.api.cached_lists import CachedLists, ListKey
from strandline.node.http.responses import Response
from strandline.node.query.index_version import IndexVersion

pytestmark = pytest.mark.unit

FIRST, SECOND = IndexVersion((1, 2), 0, 9), IndexVersion((1, 3), 0, 9)
NAMES, JOBS = ListKey(None, 10, gzip=False), ListKey("job", 10, gzip=False)


def list_of(length: int) -> Response:
    return Response(bytes(length))


def test_a_list_is_cached_for_its_version_and_its_key() -> None:
    cached = CachedLists()
    cached_list = list_of(5)
    cached.add(FIRST, NAMES, cached_list)
    assert cached.get(FIRST, NAMES) is cached_list
    for other in (JOBS, ListKey(None, 11, gzip=False), ListKey(None, 10, gzip=True)):
        assert cached.get(FIRST, other) is None
    assert cached.get(SECOND, NAMES) is None
    assert cached.get(FIRST, NAMES) is None, "an outdated version is never valid again"


def test_a_list_is_valid_for_another_span_of_its_version() -> None:
    cached = CachedLists()
    cached.add(FIRST, NAMES, list_of(5))
    assert cached.get(IndexVersion(FIRST.numbers, 3, 4), NAMES) is not None


def test_the_least_recently_used_list_is_evicted_first() -> None:
    cached = CachedLists(max_bytes=100_000)
    keys = [ListKey(str(number), 1, gzip=False) for number in range(4)]
    for key in keys[:3]:
        cached.add(FIRST, key, list_of(30_000))
    cached.get(FIRST, keys[0])
    cached.add(FIRST, keys[3], list_of(30_000))
    assert [cached.get(FIRST, key) is not None for key in keys] == [True, False, True, True]


def test_a_list_above_the_limit_is_not_cached_and_evicts_no_other() -> None:
    cached = CachedLists(max_bytes=100_000)
    cached.add(FIRST, NAMES, list_of(60_000))
    cached.add(FIRST, JOBS, list_of(100_001))
    assert cached.get(FIRST, JOBS) is None
    assert cached.get(FIRST, NAMES) is not None


def test_an_outdated_version_frees_its_memory() -> None:
    cached = CachedLists(max_bytes=100_000)
    cached.add(FIRST, NAMES, list_of(90_000))
    cached.add(SECOND, JOBS, list_of(80_000))
    cached.add(SECOND, NAMES, list_of(10_000))
    assert cached.get(SECOND, JOBS) is not None
    assert cached.get(SECOND, NAMES) is not None


def test_many_short_lists_with_long_names_stay_within_the_limit() -> None:
    cached = CachedLists(max_bytes=1 << 20)
    keys = [ListKey(f"{number:01000d}", 1, gzip=False) for number in range(1000)]
    for key in keys:
        cached.add(FIRST, key, list_of(2))
    cached_count = sum(cached.get(FIRST, key) is not None for key in keys)
    assert 0 < 5000 * cached_count <= 1 << 20
