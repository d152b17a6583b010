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
    kept = CachedLists()
    one = whole(5)
    kept.keep(FIRST, NAMES, one)
    assert kept.get(FIRST, NAMES) is one
    for other in (JOBS, ListKey(None, 11, gzip=False), ListKey(None, 10, gzip=True)):
        assert kept.get(FIRST, other) is None
    assert kept.get(SECOND, NAMES) is None
    assert kept.get(FIRST, NAMES) is None, "what is over does not come again"


def test_another_span_is_no_other_version() -> None:
    kept = CachedLists()
    kept.keep(FIRST, NAMES, whole(5))
    assert kept.get(IndexVersion(FIRST.numbers, 3, 4), NAMES) is not None


def test_whoever_was_asked_for_the_longest_time_ago_goes_first() -> None:
    kept = CachedLists(most=100_000)
    keys = [ListKey(str(number), 1, gzip=False) for number in range(4)]
    for key in keys[:3]:
        kept.keep(FIRST, key, whole(30_000))
    kept.get(FIRST, keys[0])
    kept.keep(FIRST, keys[3], whole(30_000))
    assert [kept.get(FIRST, key) is not None for key in keys] == [True, False, True, True]


def test_what_is_longer_than_all_the_room_is_not_kept_and_pushes_nothing_out() -> None:
    kept = CachedLists(most=100_000)
    kept.keep(FIRST, NAMES, whole(60_000))
    kept.keep(FIRST, JOBS, whole(100_001))
    assert kept.get(FIRST, JOBS) is None
    assert kept.get(FIRST, NAMES) is not None


def test_the_room_of_a_version_that_is_over_is_free_again() -> None:
    kept = CachedLists(most=100_000)
    kept.keep(FIRST, NAMES, whole(90_000))
    kept.keep(SECOND, JOBS, whole(80_000))
    kept.keep(SECOND, NAMES, whole(10_000))
    assert kept.get(SECOND, JOBS) is not None
    assert kept.get(SECOND, NAMES) is not None


def test_very_many_short_lists_of_long_names_take_no_more_room_than_there_is() -> None:
    kept = CachedLists(most=1 << 20)
    keys = [ListKey(f"{number:01000d}", 1, gzip=False) for number in range(1000)]
    for key in keys:
        kept.keep(FIRST, key, whole(2))
    found = sum(kept.get(FIRST, key) is not None for key in keys)
    assert 0 < 5000 * found <= 1 << 20
