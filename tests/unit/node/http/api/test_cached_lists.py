"""Lists that are kept: of one version, and within a limit."""

import pytest

from strandline.node.http.api.cached_lists import CachedLists, ListKey
from strandline.node.http.responses import Response
from strandline.node.query.index_version import IndexVersion

pytestmark = pytest.mark.unit

FIRST, SECOND = IndexVersion((1, 2), 0, 9), IndexVersion((1, 3), 0, 9)
NAMES, JOBS = ListKey(None, 10, gzip=False), ListKey("job", 10, gzip=False)


def whole(length: int) -> Response:
    return Response(bytes(length))


def test_a_list_is_kept_as_long_as_its_version_and_under_its_own_key_only() -> None:
    cached = CachedLists()
    one = whole(5)
    cached.add(FIRST, NAMES, one)
    assert cached.get(FIRST, NAMES) is one
    for other in (JOBS, ListKey(None, 11, gzip=False), ListKey(None, 10, gzip=True)):
        assert cached.get(FIRST, other) is None
    assert cached.get(SECOND, NAMES) is None
    assert cached.get(FIRST, NAMES) is None, "what is over does not come again"


def test_another_span_is_no_other_version() -> None:
    cached = CachedLists()
    cached.add(FIRST, NAMES, whole(5))
    assert cached.get(IndexVersion(FIRST.numbers, 3, 4), NAMES) is not None


def test_whoever_was_asked_for_the_longest_time_ago_goes_first() -> None:
    cached = CachedLists(max_bytes=100_000)
    keys = [ListKey(str(number), 1, gzip=False) for number in range(4)]
    for key in keys[:3]:
        cached.add(FIRST, key, whole(30_000))
    cached.get(FIRST, keys[0])
    cached.add(FIRST, keys[3], whole(30_000))
    assert [cached.get(FIRST, key) is not None for key in keys] == [True, False, True, True]


def test_what_is_longer_than_all_the_room_is_not_kept_and_pushes_nothing_out() -> None:
    cached = CachedLists(max_bytes=100_000)
    cached.add(FIRST, NAMES, whole(60_000))
    cached.add(FIRST, JOBS, whole(100_001))
    assert cached.get(FIRST, JOBS) is None
    assert cached.get(FIRST, NAMES) is not None


def test_the_room_of_a_version_that_is_over_is_free_again() -> None:
    cached = CachedLists(max_bytes=100_000)
    cached.add(FIRST, NAMES, whole(90_000))
    cached.add(SECOND, JOBS, whole(80_000))
    cached.add(SECOND, NAMES, whole(10_000))
    assert cached.get(SECOND, JOBS) is not None
    assert cached.get(SECOND, NAMES) is not None


def test_very_many_short_lists_of_long_names_take_no_more_room_than_there_is() -> None:
    cached = CachedLists(max_bytes=1 << 20)
    keys = [ListKey(f"{number:01000d}", 1, gzip=False) for number in range(1000)]
    for key in keys:
        cached.add(FIRST, key, whole(2))
    found = sum(cached.get(FIRST, key) is not None for key in keys)
    assert 0 < 5000 * found <= 1 << 20
