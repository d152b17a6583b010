"""Series of several shards, counted by their hashes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.query.answers import SeriesCount, SeriesHashesAnswer
from strandline.node.query.series_hashes import distinct_series

pytestmark = pytest.mark.unit

# Few words, so that hashes agree in one of them or in both.
HASHES = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8)


def answer(hashes: set[tuple[int, int]] | list[tuple[int, int]], of: int | None = None) -> SeriesHashesAnswer:
    """Series whose part ids are ten and up, in any order of their hashes."""
    low, high = ([one[word] for one in hashes] for word in range(2))
    ids = np.arange(10, 10 + len(hashes), dtype=np.uint32)
    words = np.array(low, dtype=np.uint64), np.array(high, dtype=np.uint64)
    return SeriesHashesAnswer(len(hashes) if of is None else of, ids, *words)


@given(st.dictionaries(st.integers(0, 9), HASHES, min_size=1, max_size=4))
def test_a_series_in_several_shards_counts_once_in_the_highest_of_them(shards: dict[int, set[tuple[int, int]]]) -> None:
    answers = {shard: answer(list(hashes)) for shard, hashes in shards.items()}
    found = distinct_series(answers)
    assert found.count == SeriesCount(len(set().union(*shards.values())))
    for shard, hashes in shards.items():
        higher = set().union(*(some for other, some in shards.items() if other > shard))
        wanted = [10 + place for place, one in enumerate(list(hashes)) if one in higher]
        named = np.frombuffer(found.repeated.get(shard, b""), dtype="<u4").tolist()
        assert sorted(named) == wanted


def test_a_sample_gives_an_estimate_and_names_no_series() -> None:
    """Of 1,000 series each, whose lowest hundred hashes are known and half of them in both shards, 1,500."""
    both, one, other = ([(3 * n + at, 0) for n in range(50)] for at in range(3))
    found = distinct_series({0: answer(both + one, of=1000), 1: answer(both + other, of=1000)})
    assert found.count.series == pytest.approx(1500, rel=0.02)
    assert (found.count.is_exact, found.repeated) == (False, {})


def test_without_shared_series_the_estimate_is_the_sum() -> None:
    one, other = ([(2 * n + at, 0) for n in range(100)] for at in range(2))
    found = distinct_series({0: answer(one, of=700), 1: answer(other, of=900)})
    assert found.count == SeriesCount(1600, is_exact=False)


def test_one_shard_alone_needs_no_hashes() -> None:
    assert distinct_series({3: answer([], of=700)}).count == SeriesCount(700)
