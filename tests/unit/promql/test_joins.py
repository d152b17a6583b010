"""Vector matching, compared with a model over dictionaries that works step by step like Prometheus."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.index.documents import decode_part_key, encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.promql.arithmetic import missing
from strandline.promql.errors import EvaluationError
from strandline.promql.expressions import Cardinality, Matching, Operator
from strandline.promql.joins import join
from strandline.promql.values import NO_SAMPLE, Vector

pytestmark = pytest.mark.unit

Labels = tuple[tuple[str, str], ...]
Series = Mapping[Labels, Sequence[float | None]]
METADATA_LABELS = ("__name__", "__type__", "__unit__")
STEPS = 4
PAIRED = Matching()
MANY_TO_MANY = Cardinality.MANY_TO_MANY


def labels(**found: str) -> Labels:
    return tuple(sorted(found.items()))


def vector(series: Series) -> Vector:
    parts = [encode_part_key(dict(key)) for key in series]
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    rows = [[NO_SAMPLE if value is None else value for value in values] for values in series.values()]
    values = np.array(rows, dtype=np.float64).reshape(len(parts), -1 if parts else STEPS)
    return Vector(KeyBytes(offsets, np.frombuffer(bytearray(b"".join(parts)), dtype=np.uint8)), values)


def series_of(found: Vector) -> dict[Labels, list[float | None]]:
    """The series that have any sample."""
    gaps = missing(found.values)
    out: dict[Labels, list[float | None]] = {}
    for row in np.flatnonzero(~gaps.all(axis=1)).tolist():
        key = labels(**decode_part_key(found.keys.key(row)))
        assert key not in out, "the same label set twice"
        out[key] = [None if gap else value for gap, value in zip(gaps[row], found.values[row].tolist(), strict=True)]
    return out


# The model.


class RefusedError(Exception):
    pass


def signature(key: Labels, matching: Matching) -> Labels:
    if matching.is_on:
        return tuple(pair for pair in key if pair[0] in matching.labels)
    return tuple(pair for pair in key if pair[0] not in (*matching.labels, "__name__"))


def result_labels(many: Labels, one: Labels, matching: Matching, *, is_nameless: bool) -> Labels:
    found = {name: value for name, value in many if not (is_nameless and name in METADATA_LABELS)}
    if matching.cardinality is Cardinality.ONE_TO_ONE:
        found = {name: value for name, value in found.items() if (name in matching.labels) == matching.is_on}
    for name in matching.include:
        found.pop(name, None)
        found.update((label, value) for label, value in one if label == name)
    return labels(**found)


def value_of(operator: Operator, left: float, right: float, *, returns_bool: bool) -> float | None:
    match operator:
        case Operator.SUBTRACT:
            return left - right
        case Operator.GREATER:
            return float(left > right) if returns_bool else left if left > right else None
    raise AssertionError(operator)


def at_step(series: Series, step: int) -> dict[Labels, float]:
    return {key: value for key, values in series.items() if (value := values[step]) is not None}


def combined(
    operator: Operator, left: dict[Labels, float], right: dict[Labels, float], matching: Matching, *, returns_bool: bool
) -> dict[Labels, float]:
    if not left or not right:
        return {}
    is_swapped = matching.cardinality is Cardinality.ONE_TO_MANY
    many, one = (right, left) if is_swapped else (left, right)
    by_signature: dict[Labels, Labels] = {}
    for key in one:
        if by_signature.setdefault(signature(key, matching), key) != key:
            raise RefusedError("found duplicate series for the match group")
    matched: set[Labels | tuple[Labels, Labels]] = set()
    out: dict[Labels, float] = {}
    is_nameless = returns_bool or operator is Operator.SUBTRACT
    for key, value in many.items():
        partner = by_signature.get(signature(key, matching))
        if partner is None:
            continue
        sides = (one[partner], value) if is_swapped else (value, one[partner])
        result = value_of(operator, *sides, returns_bool=returns_bool)
        metric = result_labels(key, partner, matching, is_nameless=is_nameless)
        mark: Labels | tuple[Labels, Labels] = signature(key, matching)
        if matching.cardinality is not Cardinality.ONE_TO_ONE:
            mark = (signature(key, matching), metric)
        if mark in matched:
            is_one_to_one = matching.cardinality is Cardinality.ONE_TO_ONE
            raise RefusedError(
                "many-to-one matching must be explicit" if is_one_to_one else "grouping labels must ensure"
            )
        matched.add(mark)
        if result is not None:
            if metric in out:
                raise RefusedError("same labelset")
            out[metric] = result
    return out


def set_operation(
    operator: Operator, left: dict[Labels, float], right: dict[Labels, float], matching: Matching
) -> dict[Labels, float]:
    of_left, of_right = ({signature(key, matching) for key in side} for side in (left, right))
    match operator:
        case Operator.AND:
            return {key: value for key, value in left.items() if signature(key, matching) in of_right}
        case Operator.UNLESS:
            return {key: value for key, value in left.items() if signature(key, matching) not in of_right}
    return left | {key: value for key, value in right.items() if signature(key, matching) not in of_left}


def model(
    operator: Operator, left: Series, right: Series, matching: Matching, *, returns_bool: bool = False
) -> dict[Labels, list[float | None]]:
    out: dict[Labels, list[float | None]] = {}
    for step in range(STEPS):
        sides = at_step(left, step), at_step(right, step)
        if operator.is_set:
            found = set_operation(operator, *sides, matching)
        else:
            found = combined(operator, *sides, matching, returns_bool=returns_bool)
        for key, value in found.items():
            out.setdefault(key, [None] * STEPS)[step] = value
    return out


LABEL_SETS = st.fixed_dictionaries(
    {},
    optional={
        "__name__": st.sampled_from(["m", "n"]),
        "__unit__": st.just("s"),
        "a": st.sampled_from("12"),
        "b": st.sampled_from("12"),
        "c": st.sampled_from("1"),
    },
).map(lambda found: labels(**found))
SIDES = st.dictionaries(
    LABEL_SETS, st.lists(st.sampled_from([None, None, 1.0, 2.0]), min_size=STEPS, max_size=STEPS), max_size=5
)
NAMES = st.lists(st.sampled_from(["a", "b", "c", "__name__"]), unique=True, max_size=3).map(tuple)
MATCHINGS = st.builds(Matching, st.sampled_from(list(Cardinality)[:3]), NAMES, st.booleans(), NAMES).map(
    lambda found: replace(found, include=()) if found.cardinality is Cardinality.ONE_TO_ONE else found
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([Operator.SUBTRACT, Operator.GREATER]), st.booleans(), SIDES, SIDES, MATCHINGS)
def test_operators_match_series_as_the_model_does(
    operator: Operator, returns_bool: bool, left: Series, right: Series, matching: Matching
) -> None:
    returns_bool &= operator.is_comparison
    try:
        expected = model(operator, left, right, matching, returns_bool=returns_bool)
    except RefusedError:
        with pytest.raises(EvaluationError, match=r"matching labels must be unique|multiple matches|same labelset"):
            join(operator, vector(left), vector(right), matching, returns_bool=returns_bool)
    else:
        assert series_of(join(operator, vector(left), vector(right), matching, returns_bool=returns_bool)) == expected


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([Operator.AND, Operator.OR, Operator.UNLESS]), SIDES, SIDES, NAMES, st.booleans())
def test_set_operators_match_at_each_step(
    operator: Operator, left: Series, right: Series, names: tuple[str, ...], is_on: bool
) -> None:
    matching = Matching(MANY_TO_MANY, names, is_on)
    expected = model(operator, left, right, matching)
    assert series_of(join(operator, vector(left), vector(right), matching)) == expected


# Examples.

REQUESTS = labels(__name__="requests", instance="a", method="get")
MORE_REQUESTS = labels(__name__="requests", instance="a", method="post")
OLD = labels(__name__="info", instance="a", version="1")
NEW = labels(__name__="info", instance="a", version="2")
BY_INSTANCE = Matching(Cardinality.MANY_TO_ONE, ("instance",), is_on=True, include=("version",))


def test_a_label_is_copied_from_the_series_that_has_a_sample_at_the_step() -> None:
    left = vector({REQUESTS: [1, 2, 3, 4], MORE_REQUESTS: [10, None, None, None]})
    right = vector({OLD: [1, 1, None, None], NEW: [None, None, None, 1]})
    assert series_of(join(Operator.MULTIPLY, left, right, BY_INSTANCE)) == {
        labels(instance="a", method="get", version="1"): [1, 2, None, None],
        labels(instance="a", method="get", version="2"): [None, None, None, 4],
        labels(instance="a", method="post", version="1"): [10, None, None, None],
    }


def test_an_included_label_that_the_one_side_lacks_is_deleted() -> None:
    matching = replace(BY_INSTANCE, include=("method",))
    found = join(Operator.ADD, vector({REQUESTS: [1] * 4}), vector({OLD: [1] * 4}), matching)
    assert series_of(found) == {labels(instance="a"): [2] * 4}


def test_group_right_keeps_the_sides_of_the_operator() -> None:
    matching = replace(BY_INSTANCE, cardinality=Cardinality.ONE_TO_MANY)
    found = join(Operator.SUBTRACT, vector({OLD: [10] * 4}), vector({REQUESTS: [1] * 4}), matching)
    assert series_of(found) == {labels(instance="a", method="get", version="1"): [9] * 4}
    kept = join(Operator.GREATER, vector({OLD: [10] * 4}), vector({REQUESTS: [1] * 4}), matching)
    assert series_of(kept) == {labels(__name__="requests", instance="a", method="get", version="1"): [10] * 4}


def test_two_matches_on_the_one_side_are_named() -> None:
    left, right = vector({REQUESTS: [1] * 4}), vector({NEW: [None, 1, 1, 1], OLD: [1, 1, None, None]})
    with pytest.raises(EvaluationError) as refused:
        join(Operator.MULTIPLY, left, right, BY_INSTANCE)
    assert str(refused.value) == (
        'found duplicate series for the match group {instance="a"} on the right hand-side of the operation: '
        '[{__name__="info", instance="a", version="1"}, {__name__="info", instance="a", version="2"}]'
        ";many-to-many matching not allowed: matching labels must be unique on one side"
    )
    swapped = replace(BY_INSTANCE, cardinality=Cardinality.ONE_TO_MANY)
    with pytest.raises(EvaluationError, match="on the left hand-side"):
        join(Operator.MULTIPLY, right, left, swapped)


def test_duplicates_are_no_error_at_steps_where_the_other_side_is_empty() -> None:
    left, right = vector({REQUESTS: [1, None, 1, 1]}), vector({OLD: [1, 1, 1, 1], NEW: [None, 1, None, None]})
    assert series_of(join(Operator.MULTIPLY, left, right, BY_INSTANCE)) == {
        labels(instance="a", method="get", version="1"): [1, None, 1, 1]
    }


def test_a_match_that_a_comparison_filters_out_still_counts_as_duplicate() -> None:
    left = vector({REQUESTS: [1] * 4, MORE_REQUESTS: [1] * 4})
    with pytest.raises(EvaluationError, match="many-to-one matching must be explicit"):
        join(Operator.GREATER, left, vector({OLD: [5] * 4}), Matching(labels=("instance",), is_on=True))


def test_operators_of_native_histograms_check_only_the_one_side() -> None:
    left, right = vector({REQUESTS: [1] * 4, MORE_REQUESTS: [1] * 4}), vector({OLD: [5] * 4})
    by_instance = Matching(labels=("instance",), is_on=True)
    assert series_of(join(Operator.TRIM_UPPER, left, right, by_instance)) == {}
    with pytest.raises(EvaluationError, match="found duplicate series"):
        join(Operator.TRIM_UPPER, right, left, by_instance)


def test_nan_is_a_sample_that_matches() -> None:
    left, right = vector({labels(a="1"): [math.nan] * 4}), vector({labels(a="1"): [1] * 4})
    assert not missing(join(Operator.ADD, left, right, PAIRED).values).any()
    assert len(join(Operator.UNLESS, right, left, Matching(MANY_TO_MANY)).keys) == 0


def test_label_names_that_need_quotes_are_shown_in_quotes() -> None:
    sides = {(("my.label", 'x"\n'),): [1.0] * 4, (("my.label", 'x"\n'), ("z", "1")): [1.0] * 4}
    with pytest.raises(EvaluationError, match=r'match group \{"my\.label"="x\\"\\n"\} on'):
        join(Operator.ADD, vector(sides), vector(sides), Matching(labels=("my.label",), is_on=True))
