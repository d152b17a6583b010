"""Comparing acknowledged samples with the samples found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.demo.ledger import Comparison, Ledger, Samples, compare
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress

pytestmark = pytest.mark.unit

Sample = tuple[int, int, float]
SAMPLES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from([0.0, 1.0, float("nan")])))


def samples(*tuples: Sample) -> Samples:
    return Samples(
        np.array([key // 2 for key, _, _ in tuples], dtype=np.uint64),
        np.array([key % 2 for key, _, _ in tuples], dtype=np.uint64),
        np.array([time for _, time, _ in tuples], dtype=np.int64),
        np.array([value for _, _, value in tuples], dtype=np.float64),
    )


def test_samples_that_are_found_once_and_unchanged_are_exact() -> None:
    sent = samples((1, 10, 1.0), (2, 10, float("nan")), (1, 20, 3.0))
    compared = compare(sent, samples((1, 20, 3.0), (1, 10, 1.0), (2, 10, float("nan"))))
    assert compared == Comparison(acknowledged=3, found=3, lost=0, doubled=0, wrong=0, foreign=0)
    assert compared.is_exact


def test_a_sample_that_is_not_found_is_lost() -> None:
    compared = compare(samples((1, 10, 1.0), (2, 10, 1.0)), samples((1, 10, 1.0)))
    assert (compared.lost, compared.is_exact) == (1, False)


def test_a_sample_that_is_found_twice_is_doubled_and_not_foreign() -> None:
    compared = compare(samples((1, 10, 1.0)), samples((1, 10, 1.0), (1, 10, 1.0)))
    assert (compared.doubled, compared.foreign, compared.lost, compared.is_exact) == (1, 0, 0, False)


def test_a_sample_with_another_value_is_wrong() -> None:
    compared = compare(samples((1, 10, 1.0)), samples((1, 10, 2.0)))
    assert (compared.wrong, compared.lost, compared.is_exact) == (1, 0, False)


def test_samples_that_were_never_sent_are_foreign() -> None:
    compared = compare(samples((1, 10, 1.0)), samples((1, 10, 1.0), (1, 11, 1.0)))
    assert (compared.foreign, compared.is_exact) == (1, False)


def test_of_two_that_were_acknowledged_the_later_one_counts() -> None:
    assert compare(samples((1, 10, 1.0), (1, 10, 2.0)), samples((1, 10, 2.0))).is_exact


@given(SAMPLES, SAMPLES)
def test_it_counts_like_a_model_with_a_dictionary(sent: list[Sample], found: list[Sample]) -> None:
    compared = compare(samples(*sent), samples(*found))
    sent_values = {(key, time): repr(value) for key, time, value in sent}
    found_values = {(key, time): repr(value) for key, time, value in found}
    both = sent_values.keys() & found_values.keys()
    assert compared.acknowledged == len(sent_values)
    assert compared.found == len(found)
    assert compared.lost == len(sent_values) - len(both)
    assert compared.doubled == len(found) - len(found_values)
    assert compared.foreign == len(found_values) - len(both)
    assert compared.wrong == sum(sent_values[sample] != found_values[sample] for sample in both)


def test_a_ledger_has_every_sample_of_the_requests() -> None:
    ledger = Ledger()
    body = compress(encode_request([Series([("a", "b")], [(1, 1.0), (2, 2.0)]), Series([("a", "c")], [(1, 3.0)])]))
    assert ledger.add(body) == 3
    assert ledger.add(body) == 3
    stored = ledger.samples()
    assert stored.time.tolist() == [1, 2, 1] * 2
    assert stored.value.tolist() == [1.0, 2.0, 3.0] * 2
    assert len(set(zip(stored.key_high.tolist(), stored.key_low.tolist(), strict=True))) == 2


def test_an_empty_ledger_is_exact_with_no_samples() -> None:
    assert compare(Ledger().samples(), Samples.concatenate([])).is_exact
