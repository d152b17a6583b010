"""Parsing and checking the API's data."""

import pytest

from strandline.node.client.answers import Point, SampledSeries, label_sets, samples, texts
from strandline.node.client.envelope import Envelope
from strandline.node.client.errors import NotANode

pytestmark = pytest.mark.unit

VECTOR = {"resultType": "vector", "result": [{"metric": {"a": "b"}, "value": [1.5, "NaN"]}]}
MATRIX = {"resultType": "matrix", "result": [{"metric": {}, "values": [[1, "2"], [16.001, "+Inf"]]}]}


def test_a_list_that_is_cut_to_the_limit_is_marked_as_truncated() -> None:
    complete, truncated = Envelope(["a", "b"], ()), Envelope(["a", "b", "c"], ())
    assert (texts(complete, 2).items, texts(complete, 2).more) == (("a", "b"), False)
    assert (texts(truncated, 2).items, texts(truncated, 2).more) == (("a", "b"), True)
    assert (texts(truncated, 0).items, texts(truncated, 0).more) == (("a", "b", "c"), False)


def test_a_list_that_the_node_truncates_is_marked_in_the_same_way() -> None:
    warning = "results truncated due to limit: there are more than the 2 that are listed"
    parsed = texts(Envelope(["a", "b"], ("a shard is away", warning)), 0)
    assert (parsed.more, parsed.warnings) == (True, ("a shard is away",))


def test_series_are_label_sets() -> None:
    assert label_sets(Envelope([{"a": "b"}, {}], ()), 9).items == ({"a": "b"}, {})


def test_samples_are_a_vector_a_matrix_a_scalar_or_a_string() -> None:
    assert samples(Envelope(VECTOR, ()), 9).items == (SampledSeries({"a": "b"}, (Point(1500, "NaN"),)),)
    assert samples(Envelope(MATRIX, ()), 9).items == (SampledSeries({}, (Point(1000, "2"), Point(16_001, "+Inf"))),)
    scalar = {"resultType": "scalar", "result": [7, "3"]}
    assert samples(Envelope(scalar, ()), 9).items == (SampledSeries({}, (Point(7000, "3"),)),)
    string = {"resultType": "string", "result": [7, "a"]}
    assert samples(Envelope(string, ()), 9).items == (SampledSeries({}, (Point(7000, "a"),)),)


@pytest.mark.parametrize("data", [None, {"a": 1}, "text", [1], [None], [["a"]]])
def test_a_malformed_list_of_strings_is_refused(data: object) -> None:
    with pytest.raises(NotANode, match="the answer is malformed"):
        texts(Envelope(data, ()), 9)


@pytest.mark.parametrize("data", [[1], ["a"], [{"a": 1}], [{"a": None}]])
def test_a_malformed_list_of_series_is_refused(data: object) -> None:
    with pytest.raises(NotANode, match="expected labels"):
        label_sets(Envelope(data, ()), 9)


@pytest.mark.parametrize(
    "data",
    [
        [],
        {"resultType": "streams", "result": [1, "a"]},
        {"resultType": "vector", "result": {}},
        {"resultType": "vector", "result": [1]},
        {"resultType": "vector", "result": [{"metric": {}}]},
        {"resultType": "vector", "result": [{"value": [1, "2"]}]},
        {"resultType": "vector", "result": [{"metric": {}, "value": [1, 2]}]},
        {"resultType": "matrix", "result": [{"metric": {}, "values": {}}]},
        {"resultType": "matrix", "result": [{"metric": {}, "values": [["1", "2"]]}]},
    ],
)
def test_a_malformed_query_result_is_refused(data: object) -> None:
    with pytest.raises(NotANode, match="the answer is malformed"):
        samples(Envelope(data, ()), 9)
