"""Numbers for the series of a bucket that is below the index's checkpoint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.key_table import MISSING
from strandline.index.numbering import BucketNumbering
from strandline.wire.columns import Columns
from strandline.wire.encoding import Series
from support.records import decoded

pytestmark = pytest.mark.unit


def batch(*series: tuple[str, int]) -> Columns:
    """A row for each: its name, and how many samples it has."""
    return decoded(Series([("name", name)], [(time, 1.0) for time in range(samples)]) for name, samples in series)


def test_series_are_numbered_in_the_order_of_their_first_samples() -> None:
    numbers, new = BucketNumbering().take(batch(("b", 1), ("a", 2), ("c", 1)))
    assert numbers.tolist() == [0, 1, 2]
    assert new.tolist() == [0, 1, 2]


def test_a_series_keeps_its_number_from_batch_to_batch() -> None:
    numbering = BucketNumbering()
    numbering.take(batch(("a", 1), ("b", 1)))
    numbers, new = numbering.take(batch(("c", 1), ("b", 1), ("a", 1)))
    assert numbers.tolist() == [2, 1, 0]
    assert new.tolist() == [0], "the positions of the new ones"


def test_a_series_that_comes_twice_in_a_batch_is_new_once() -> None:
    numbers, new = BucketNumbering().take(batch(("a", 1), ("a", 1), ("b", 1), ("a", 1)))
    assert numbers.tolist() == [0, 0, 1, 0]
    assert new.tolist() == [0, 2]


def test_a_series_without_a_sample_has_no_number_and_takes_none() -> None:
    numbering = BucketNumbering()
    numbers, new = numbering.take(batch(("a", 0), ("b", 1), ("c", 0)))
    assert numbers.tolist() == [MISSING, 0, MISSING]
    assert new.tolist() == [1]
    assert numbering.take(batch(("a", 1)))[0].tolist() == [1]


def test_an_empty_batch_gives_nothing() -> None:
    numbers, new = BucketNumbering().take(batch())
    assert (len(numbers), len(new)) == (0, 0)


def test_each_bucket_begins_with_the_first_number() -> None:
    BucketNumbering().take(batch(("a", 1), ("b", 1)))
    assert BucketNumbering().take(batch(("b", 1)))[0].tolist() == [0]


@given(st.lists(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 2)), max_size=6), max_size=5))
def test_numbers_are_those_of_a_dictionary(batches: list[list[tuple[str, int]]]) -> None:
    numbering, model = BucketNumbering(), dict[str, int]()
    for series in batches:
        expected, expected_new = [], []
        for position, (name, samples) in enumerate(series):
            if samples and name not in model:
                model[name] = len(model)
                expected_new.append(position)
            expected.append(model[name] if samples else MISSING)
        numbers, new = numbering.take(batch(*series))
        assert numbers.tolist() == expected
        assert new.tolist() == expected_new
