"""Counting the series of several shards by their hashes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.query.answers import SeriesCount, SeriesHashesAnswer
from strandline.node.query.series_hashes import distinct_series

pytestmark = pytest.mark.unit

# A small range of words, so that hashes agree in one or both of them.
HASHES = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8)


def answer(hashes: set[tuple[int, int]] | list[tuple[int, int]], of: int | None = None) -> SeriesHashesAnswer:
    """Series with part ids from ten on, in any order of their hashes."""
    low, high = ([series_hash[word] for series_hash in hashes] for word in range(2))
    ids = np.arange(10, 10 + len(hashes), dtype=np.uint32)
    words = np.array(low, dtype=np.uint64), np.array(high, dtype=np.uint64)
    return SeriesHashesAnswer(len(hashes) if of is None else of, ids, *words)


@given(st.dictionaries(st.integers(0, 9), HASHES, min_size=1, max_size=4))
def test_a_series_in_several_shards_counts_once_in_the_highest_of_them(shards: dict[int, set[tuple[int, int]]]) -> None:
    answers = {shard: answer(list(hashes)) for shard, hashes in shards.items()}
    distinct = distinct_series(answers)
    assert distinct.count == SeriesCount(len(set().union(*shards.values())))
    for shard, hashes in shards.items():
        higher = set().union(*(other_hashes for other, other_hashes in shards.items() if other > shard))
        expected = [10 + place for place, series_hash in enumerate(list(hashes)) if series_hash in higher]
        named = np.frombuffer(distinct.repeated.get(shard, b""), dtype="<u4").tolist()
        assert sorted(named) == expected


def test_a_sample_gives_an_estimate_and_names_no_series() -> None:
    """Two shards with 1,000 series each: half of their lowest hundred hashes agree, so that the estimate is 1,500."""
    both, first, second = ([(3 * n + at, 0) for n in range(50)] for at in range(3))
    distinct = distinct_series({0: answer(both + first, of=1000), 1: answer(both + second, of=1000)})
    assert distinct.count.series == pytest.approx(1500, rel=0.02)
    assert (distinct.count.is_exact, distinct.repeated) == (False, {})


def test_without_shared_series_the_estimate_is_the_sum() -> None:
    first, second = ([(2 * n + at, 0) for n in range(100)] for at in range(2))
    distinct = distinct_series({0: answer(first, of=700), 1: answer(second, of=900)})
    assert distinct.count == SeriesCount(1600, is_exact=False)


def test_one_shard_alone_needs_no_hashes() -> None:
    assert distinct_series({3: answer([], of=700)}).count == SeriesCount(700)
