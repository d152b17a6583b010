"""Columns as JSON."""

from itertools import pairwise

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.node.http.api import json_pieces
from strandline.node.http.api.json_pieces import Points, matrix_json, scalar_json, series_json, terms_json, vector_json
from strandline.node.query.answers import TermsAnswer

pytestmark = pytest.mark.unit

any_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
label_sets = st.dictionaries(any_text, any_text, max_size=4)


def keys_of(label_sets: list[dict[str, str]]) -> KeyBytes:
    keys = [encode_part_key(labels) for labels in label_sets]
    return KeyBytes(np.cumsum([0, *map(len, keys)], dtype=np.int64), np.frombuffer(b"".join(keys), dtype=np.uint8))


def terms_of(terms: list[bytes]) -> TermsAnswer:
    offsets = np.cumsum([0, *map(len, terms)], dtype=np.int64)
    return TermsAnswer(
        offsets, np.frombuffer(b"".join(terms), dtype=np.uint8), np.ones(len(terms), np.int64), more=False
    )


def points_of(label_sets: list[dict[str, str]], samples: list[list[tuple[int, float]]]) -> Points:
    flat = [sample for of_one_series in samples for sample in of_one_series]
    return Points(
        keys_of(label_sets),
        np.cumsum([0, *map(len, samples)], dtype=np.int64),
        np.array([time for time, _ in flat], dtype=np.int64),
        np.array([value for _, value in flat], dtype=np.float64).view(np.uint64),
    )


@given(st.lists(label_sets, max_size=5))
def test_any_labels_are_read_back_by_another_parser(drawn: list[dict[str, str]]) -> None:
    parsed = orjson.loads(b"".join(series_json(keys_of(drawn))))
    assert [list(labels.items()) for labels in parsed] == [sorted(labels.items()) for labels in drawn]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=5))
def test_any_terms_are_read_back_by_another_parser(drawn: list[str]) -> None:
    assert orjson.loads(b"".join(terms_json(terms_of([term.encode() for term in drawn])))) == drawn


@given(st.lists(st.text(st.sampled_from('abcdefgh "\\\n\x1f\x7f\x80é€😀'), max_size=40), max_size=5))
def test_texts_longer_than_a_word_are_read_back_wherever_a_character_is_escaped(drawn: list[str]) -> None:
    assert orjson.loads(b"".join(terms_json(terms_of([term.encode() for term in drawn])))) == drawn


@pytest.mark.parametrize("special", ['"', "\\", "\n", "\x00", "\x1f", "\x7f", "\x80", "é", "😀"])
def test_each_character_is_found_at_each_place_of_a_word(special: str) -> None:
    terms = [
        ordinary[:place] + special + ordinary[place:]
        for ordinary in ("", "a" * 7, " " * 24)
        for place in range(len(ordinary) + 1)
    ]
    assert orjson.loads(b"".join(terms_json(terms_of([term.encode() for term in terms])))) == terms


def test_bytes_after_a_text_are_not_included() -> None:
    """Words are read beyond a text's end, into the next text, but never beyond the end of the data."""
    terms = ["a", '"', "bc", "é", "", "d" * 9, "\\", "e"]
    assert orjson.loads(b"".join(terms_json(terms_of([term.encode() for term in terms])))) == terms


@given(st.lists(st.binary(max_size=12), max_size=5))
def test_invalid_utf8_becomes_the_replacement_character(drawn: list[bytes]) -> None:
    parsed = orjson.loads(b"".join(terms_json(terms_of(drawn))))
    for text, sent in zip(parsed, drawn, strict=True):
        # The number of replacement characters may differ between decoders; all valid characters are preserved.
        assert text.replace("\ufffd", "") == sent.decode(errors="ignore").replace("\ufffd", "")
        assert ("\ufffd" in text) == ("\ufffd" in sent.decode(errors="replace"))


@pytest.mark.parametrize(
    "broken",
    [
        b"\x80",
        b"\xc3",
        b"\xe2\x82",
        b"\xf0\x9f\x98",
        b"\xf5\x80\x80\x80",
        # Overlong encodings.
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xe0\x9f\xbf",
        b"\xf0\x8f\xbf\xbf",
        # Half of a surrogate pair, and a code point beyond the last one.
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
    ],
)
def test_each_byte_of_an_invalid_sequence_is_replaced(broken: bytes) -> None:
    (text,) = orjson.loads(b"".join(terms_json(terms_of([b"a" + broken + b"b"]))))
    assert text == "a" + "\ufffd" * len(broken) + "b"


@pytest.mark.parametrize("text", ["\x80", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"])
def test_the_first_and_last_characters_of_each_length_are_passed_on(text: str) -> None:
    assert b"".join(terms_json(terms_of([text.encode()]))) == f'["{text}"]'.encode()


def test_text_is_unescaped_where_json_allows() -> None:
    written = b"".join(terms_json(terms_of(["é€😀/<>&\u2028".encode(), b'"\\\n\t\x01\x7f'])))
    assert written == '["é€😀/<>&\u2028","\\"\\\\\\n\\t\\u0001\x7f"]'.encode()


def test_an_empty_result_is_an_empty_list() -> None:
    assert b"".join(series_json(keys_of([]))) == b"[]"
    assert b"".join(terms_json(terms_of([]))) == b"[]"
    assert b"".join(matrix_json(points_of([], []))) == b"[]"
    assert b"".join(vector_json(points_of([], []), 5)) == b"[]"


def test_a_vector_has_one_point_per_series_at_the_requested_time() -> None:
    points = points_of([{"a": "b"}, {}], [[(7, 1.5)], [(8, float("nan"))]])
    assert b"".join(vector_json(points, 1500)) == (
        b'[{"metric":{"a":"b"},"value":[1.500,"1.5"]},{"metric":{},"value":[1.500,"NaN"]}]'
    )


def test_a_matrix_has_the_points_of_each_series() -> None:
    points = points_of([{"a": "b"}, {"c": "d"}], [[(1000, 1.0), (2000, -2.5)], [(1000, float("inf"))]])
    assert b"".join(matrix_json(points)) == (
        b'[{"metric":{"a":"b"},"values":[[1,"1"],[2,"-2.5"]]},{"metric":{"c":"d"},"values":[[1,"+Inf"]]}]'
    )


def test_a_scalar_is_one_point() -> None:
    assert b"".join(scalar_json(1500, 2.0)) == b'[1.500,"2"]'


@pytest.mark.parametrize("room", [1, 200, 1000, 10**6])
def test_the_json_is_independent_of_where_a_list_is_divided(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = [{"n": str(number), "long": '"' * number} for number in range(40)]
    samples = [[(time, float(time)) for time in range(number % 5 + 1)] for number in range(40)]
    points = points_of(labels, samples)
    monkeypatch.setattr(json_pieces, "_PIECE_BYTES", room)
    divided = list(matrix_json(points))
    assert (len(divided) > 3) == (room < 10**6)
    parsed = orjson.loads(b"".join(divided))
    assert [series["metric"] for series in parsed] == [
        {name: value for name, value in original.items() if value} for original in labels
    ]
    assert [[float(value) for _, value in series["values"]] for series in parsed] == [
        [value for _, value in original] for original in samples
    ]
    assert orjson.loads(b"".join(series_json(points.keys))) == [series["metric"] for series in parsed]


def test_truncated_results_keep_the_points_of_the_first_series() -> None:
    points = points_of([{"n": str(n)} for n in range(3)], [[(1, 1.0)], [(2, 2.0), (3, 3.0)], [(4, 4.0)]])
    two = points.first(2)
    assert [two.keys.key(n) for n in range(len(two))] == [points.keys.key(n) for n in range(2)]
    assert [two.time[a:b].tolist() for a, b in pairwise(two.first_point.tolist())] == [[1], [2, 3]]
    assert points.first(3) is points
    assert len(points.first(0)) == 0
