"""Few series by their labels: the same as columns of them give."""

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.documents import FewKeys, decode_part_key, encode_part_key
from strandline.node.query.answers import FewLabels, SeriesAnswer, TermsAnswer
from strandline.node.query.few_labels import (
    labels_of,
    names_of,
    series_columns,
    series_of,
    terms_columns,
    values_of,
)
from strandline.node.query.frames import FrameDamaged, Message, encode
from strandline.node.query.link_socket import decode_frame
from strandline.node.query.merging import merge_series, merge_terms
from strandline.node.query.messages import answer_message, answer_of

pytestmark = pytest.mark.unit

texts = st.sampled_from(["a", "b", "B", "ab", "a b", "é", "\U0001f600", "\uffff"])
label_sets = st.dictionaries(texts, texts, max_size=3).map(lambda labels: dict(sorted(labels.items())))
shards = st.lists(
    st.lists(label_sets, max_size=4, unique_by=lambda labels: tuple(labels.items())).map(FewLabels),
    min_size=1,
    max_size=3,
)
limits = st.integers(1, 6)


def labels_in(answer: SeriesAnswer) -> list[dict[str, str]]:
    return [decode_part_key(answer.keys.key(place)) for place in range(len(answer.keys))]


@given(shards, limits)
def test_series_are_those_of_merged_columns(answers: list[FewLabels], limit: int) -> None:
    found, merged = series_of(answers, limit), merge_series([series_columns(one) for one in answers], limit)
    assert found.found == labels_in(merged)
    assert found.more == merged.more
    # In their order, too: a list of labels as JSON has it.
    assert orjson.dumps(found.found) == orjson.dumps(labels_in(merged))


@given(shards, limits, st.one_of(st.none(), texts))
def test_names_and_values_are_those_of_merged_columns(answers: list[FewLabels], limit: int, label: str | None) -> None:
    found = names_of(answers, limit) if label is None else values_of(answers, label, limit)
    merged = merge_terms([terms_columns(one, label, limit) for one in answers], limit)
    assert (found.found, found.more) == (merged.terms(), merged.more)


@given(shards, texts)
def test_columns_count_the_series_that_have_a_value(answers: list[FewLabels], label: str) -> None:
    (few, *_) = answers
    columns = terms_columns(few, label, 10)
    assert isinstance(columns, TermsAnswer)
    expected = [sum(labels.get(label) == term for labels in few.series) for term in columns.terms()]
    assert columns.counts.tolist() == expected


def test_warnings_of_all_shards_are_told() -> None:
    answers = [FewLabels([{"a": "b"}], ("one",)), FewLabels([], ("two",))]
    assert series_of(answers, 1).warnings == names_of(answers, 1).warnings == ("one", "two")


@given(st.lists(label_sets, max_size=4))
def test_labels_are_read_from_keys_in_their_order(drawn: list[dict[str, str]]) -> None:
    assert labels_of(few_of([encode_part_key(labels) for labels in drawn])) == drawn


def test_what_is_no_text_is_left_to_columns() -> None:
    assert labels_of(few_of([b"\x01\x00a\x01\x00\xff"])) is None


def few_of(keys: list[bytes]) -> FewKeys:
    offsets = np.cumsum([0, *map(len, keys)], dtype=np.int64)
    return FewKeys(np.arange(len(keys), dtype=np.uint32), offsets, np.frombuffer(b"".join(keys), dtype=np.uint8))


@given(st.lists(label_sets, max_size=3))
def test_they_cross_the_link(drawn: list[dict[str, str]]) -> None:
    told = FewLabels(drawn, ("a warning",))
    assert answer_of(decode_frame(b"".join(encode(answer_message(told))))) == told


@pytest.mark.parametrize("series", [None, {}, "a", [1], [["a", "b"]], [{"a": 1}], [{"a": None}, {}]])
def test_what_is_no_list_of_labels_is_damage(series: object) -> None:
    with pytest.raises(FrameDamaged):
        answer_of(Message("few", {"warnings": [], "series": series}))
