"""Lists in JSON of several shards as one: every result once, in order, and none if there are too many."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.query.asks import LABEL_NAMES, LABEL_VALUES, SERIES
from strandline.node.query.few_json import merged_few
from strandline.node.query.plain_lookups import FewJson

pytestmark = pytest.mark.unit

KINDS = (SERIES, LABEL_NAMES, LABEL_VALUES)
EMPTY = FewJson(0, b"[]")
# Among them some whose order in UTF-16 is another than in UTF-8.
texts = st.sampled_from(["a", "b", "B", "ab", "a b", 'a"b', "", "é", "\U0001f600", "\uffff"])
label_sets = st.dictionaries(texts, texts, max_size=3).map(lambda labels: dict(sorted(labels.items())))
limits = st.integers(1, 9)
Results = list[dict[str, str]] | list[str]


def few(results: Results) -> FewJson:
    return FewJson(len(results), orjson.dumps(results))


def in_bytes(labels: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in labels.items()]


series_of_shards = st.lists(
    st.lists(label_sets, max_size=4, unique_by=lambda labels: tuple(labels.items()))
    .map(lambda found: sorted(found, key=in_bytes))
    .map(few),
    min_size=1,
    max_size=4,
)
terms_of_shards = st.lists(
    st.sets(texts, max_size=4).map(lambda found: few(sorted(found, key=str.encode))), min_size=1, max_size=4
)


def check(kind: str, answers: list[FewJson], limit: int, union: Results) -> None:
    """What is merged is this, unless that is more than so many."""
    merged, finders = merged_few(kind, answers, limit), sum(answer.text != EMPTY.text for answer in answers)
    if finders > 1 and len(union) > limit:
        assert merged is None
    else:
        assert merged == FewJson(sum(answer.series for answer in answers), orjson.dumps(union))


@given(series_of_shards, limits)
def test_series_are_those_of_all_shards_in_the_order_of_their_labels(answers: list[FewJson], limit: int) -> None:
    every = [labels for answer in answers for labels in orjson.loads(answer.text)]
    unlike = {tuple(labels.items()): labels for labels in every}
    check(SERIES, answers, limit, sorted(unlike.values(), key=in_bytes))


@given(terms_of_shards, limits, st.sampled_from([LABEL_NAMES, LABEL_VALUES]))
def test_names_and_values_are_those_of_all_shards_in_order(answers: list[FewJson], limit: int, kind: str) -> None:
    union = {text for answer in answers for text in orjson.loads(answer.text)}
    check(kind, answers, limit, sorted(union, key=str.encode))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("others", [[], [EMPTY], [EMPTY, EMPTY]])
@pytest.mark.parametrize("place", [0, -1])
def test_what_one_shard_alone_has_found_is_passed_on_as_it_is(kind: str, others: list[FewJson], place: int) -> None:
    """It is not even looked at: the shard has kept to the limit, and has put it in order."""
    found = FewJson(3, b"[ passed on ]")
    assert merged_few(kind, [found, *others] if place == 0 else [*others, found], 1) == found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shards", [1, 3])
def test_nothing_in_any_shard_is_an_empty_list(kind: str, shards: int) -> None:
    assert merged_few(kind, [EMPTY] * shards, 1) == EMPTY


def test_what_two_shards_have_both_found_is_one_result_and_does_not_count_twice_against_the_limit() -> None:
    assert merged_few(SERIES, [few([{"a": "b"}]), few([{"a": "b"}])], 1) == FewJson(2, b'[{"a":"b"}]')
    assert merged_few(LABEL_NAMES, [few(["a"]), few(["a"])], 1) == FewJson(2, b'["a"]')


def test_one_result_more_than_is_wanted_is_too_many() -> None:
    answers = [few(["a", "c"]), few(["b"])]
    assert merged_few(LABEL_VALUES, answers, 3) == FewJson(3, b'["a","b","c"]')
    assert merged_few(LABEL_VALUES, answers, 2) is None
