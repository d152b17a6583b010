"""Lists in JSON of several shards as one: the same as columns of them give."""

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.documents import decode_part_key
from strandline.node.query.answers import SeriesAnswer
from strandline.node.query.asks import LABEL_NAMES, LABEL_VALUES, SERIES
from strandline.node.query.few_json import merged_few, series_columns, terms_columns
from strandline.node.query.merging import merge_series, merge_terms
from strandline.node.query.plain_lookups import FewJson

pytestmark = pytest.mark.unit

texts = st.sampled_from(["a", "b", "B", "ab", "a b", 'a"b', "é", "\U0001f600", "\uffff"])
label_sets = st.dictionaries(texts, texts, max_size=3).map(lambda labels: dict(sorted(labels.items())))
limits = st.integers(1, 6)


def few(results: list[dict[str, str]] | list[str]) -> FewJson:
    return FewJson(len(results), orjson.dumps(results))


series_of_shards = st.lists(
    st.lists(label_sets, max_size=4, unique_by=lambda labels: tuple(labels.items()))
    .map(lambda found: sorted(found, key=lambda labels: list(labels.items())))
    .map(few),
    min_size=1,
    max_size=3,
)
terms_of_shards = st.lists(st.sets(texts, max_size=4).map(sorted).map(few), min_size=1, max_size=3)


def labels_in(answer: SeriesAnswer) -> list[dict[str, str]]:
    return [decode_part_key(answer.keys.key(place)) for place in range(len(answer.keys))]


@given(series_of_shards, st.integers(4, 12))
def test_series_are_those_of_merged_columns(answers: list[FewJson], limit: int) -> None:
    found, merged = merged_few(SERIES, answers, limit), merge_series([series_columns(one) for one in answers], limit)
    assert found.text == orjson.dumps(labels_in(merged))
    assert (found.series, found.more) == (len(merged.keys), merged.more)


@given(terms_of_shards, st.integers(4, 9), st.sampled_from([LABEL_NAMES, LABEL_VALUES]))
def test_names_and_values_are_those_of_merged_columns(answers: list[FewJson], limit: int, kind: str) -> None:
    found, merged = merged_few(kind, answers, limit), merge_terms([terms_columns(one) for one in answers], limit)
    assert found.text == orjson.dumps(merged.terms())
    assert (found.series, found.more) == (0, merged.more)


def test_what_one_shard_has_found_is_passed_on_as_it_is() -> None:
    spaced = FewJson(1, b'[ "a" ]')
    assert merged_few(LABEL_NAMES, [FewJson(0, b"[]"), spaced, FewJson(2, b"[]")], 5).text == spaced.text
    assert merged_few(LABEL_NAMES, [FewJson(0, b"[]")] * 2, 5).text == b"[]"


def test_terms_of_few_have_columns_of_one_length() -> None:
    columns = terms_columns(few(["a", "é"]))
    assert columns.terms() == ["a", "é"]
    assert np.array_equal(columns.counts, [1, 1])


def test_columns_can_be_written_to_as_those_of_a_frame_can() -> None:
    """Kernels are compiled for each kind of array, and a start has those for this one at hand."""
    assert series_columns(few([{"a": "b"}])).keys.data.flags.writeable
    assert terms_columns(few([])).data.flags.writeable
