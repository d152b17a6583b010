import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.store.buffer.dictionary import Dictionary
from support.buffer_model import key_columns

pytestmark = pytest.mark.unit

WORDS = st.sampled_from([0, 1, 2, 2**63, 2**64 - 1])
KEYS = st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=60, unique=True)


@given(KEYS, KEYS, st.integers(1, 20))
def test_keys_are_found_by_number_and_no_others(defined: list, sought: list, groups: int) -> None:
    dictionary = Dictionary(groups)
    dictionary.define(key_columns(defined))
    found = dictionary.known().find(key_columns([*sought, *sought[:3]]))
    assert found.tolist() == [number for number, key in enumerate(defined) if key in sought]


@given(KEYS, st.integers(1, 20))
def test_a_series_is_in_the_group_of_its_metric(defined: list, groups: int) -> None:
    dictionary = Dictionary(groups)
    dictionary.define(key_columns(defined))
    known = dictionary.known()
    assert known.group.tolist() == [metric % groups for metric, _, _ in defined]
    order = known.by_group()
    expected = sorted(range(len(defined)), key=lambda number: (defined[number][0] % groups, number))
    assert order.number.tolist() == expected
    assert order.number[order.position].tolist() == list(range(len(defined)))
    for group in range(groups):
        part = order.number[order.group_first[group] : order.group_first[group + 1]]
        assert part.tolist() == known.of_group(group).tolist()


@given(KEYS)
def test_numbers_sort_by_their_keys(defined: list) -> None:
    dictionary = Dictionary(3)
    dictionary.define(key_columns(defined))
    numbers = np.arange(len(defined), dtype=np.uint32)
    ordered = dictionary.known().sorted_by_key(numbers)
    assert [defined[number] for number in ordered.tolist()] == sorted(defined)


def test_a_view_of_the_dictionary_does_not_change_while_the_dictionary_grows() -> None:
    dictionary = Dictionary(16)
    keys = [(word, word + 1, word + 2) for word in range(5_000)]
    seen = []
    for start in range(0, 5_000, 700):
        dictionary.define(key_columns(keys[start : start + 700]))
        seen.append((min(start + 700, 5_000), dictionary.known()))
    for count, known in seen:
        assert len(known) == count
        assert known.keys.metric.tolist() == list(range(count))
        assert known.keys.key_low.tolist() == list(range(2, count + 2))


def test_an_empty_dictionary_takes_no_memory_and_a_filled_one_reports_its_size() -> None:
    dictionary = Dictionary(16)
    assert dictionary.nbytes == 0
    dictionary.define(key_columns([(word, 0, 0) for word in range(2_000)]))
    assert 2_000 * 26 <= dictionary.nbytes <= 3_000 * 26


@pytest.mark.parametrize("groups", [0, -1, 65_537])
def test_a_number_of_groups_out_of_bounds_is_refused(groups: int) -> None:
    with pytest.raises(ValueError, match=str(groups)):
        Dictionary(groups)
