"""Binary operators between two vectors: vector matching and the labels of the results.

Series match if they have the same signature: the labels in `on`, or all labels except those in `ignoring`. Signatures
are computed once for all steps, and values row by row. The rules of matching apply to each step separately: a series
without a sample at a step does not take part in it, so two series with one signature are an error only if both have a
sample at the same step.
"""

import re
from dataclasses import dataclass
from typing import Final, NoReturn

import numpy as np

from strandline.arrays import Bools, Rows
from strandline.index.documents import decode_part_key
from strandline.index.key_bytes import KeyBytes, label_order, take_keys
from strandline.promql.arithmetic import drops_name, is_histogram_operator, missing, vector_with_vector
from strandline.promql.duplicates import GroupMembers, merge_equal
from strandline.promql.errors import EvaluationError
from strandline.promql.expressions import Cardinality, Matching, Operator
from strandline.promql.go_text import quoted
from strandline.promql.kernels.matching import filter_rows, first_conflict, mark_present, pair_rows, steps_with_samples
from strandline.promql.labels import (
    METADATA_LABELS,
    distinct_keys,
    keeping,
    label_values,
    signatures,
    with_label,
    without,
)
from strandline.promql.values import F64Matrix, Vector, bits_for_reading

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def join(operator: Operator, left: Vector, right: Vector, matching: Matching, *, returns_bool: bool = False) -> Vector:
    """The result of an operator for two vectors over the same steps. The series are in the order of the left side, or
    of the right side with `group_right`. `or` appends the series of the right side.
    """
    match operator:
        case Operator.AND | Operator.UNLESS:
            return _and_unless(left, right, matching, is_wanted=operator is Operator.AND)
        case Operator.OR:
            return _union(left, right, matching)
        case _:
            return _combined(operator, left, right, matching, returns_bool=returns_bool)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Rows of the "many" side, the matching rows of the "one" side, and their common signatures."""

    many: Vector
    many_rows: Rows
    one: Vector
    one_rows: Rows
    signature: Rows

    def first_conflict(self, group_of: Rows, groups: int) -> int:
        """The first step at which two pairs of a group have samples; -1 if there is none."""
        if not len(group_of) or np.bincount(group_of).max() < 2:
            return -1
        members = GroupMembers.of(group_of, groups)
        many, one = bits_for_reading(self.many.values), bits_for_reading(self.one.values)
        every_step = np.ones(many.shape[1], dtype=np.bool_)
        step, _ = first_conflict(members.rows, members.first, many, self.many_rows, one, self.one_rows, every_step)
        return int(step)


def _combined(operator: Operator, left: Vector, right: Vector, matching: Matching, *, returns_bool: bool) -> Vector:
    is_swapped = matching.cardinality is Cardinality.ONE_TO_MANY
    many, one = (right, left) if is_swapped else (left, right)
    (many_signature, one_signature), signature_keys = signatures(
        [many.keys, one.keys], matching.labels, is_on=matching.is_on
    )
    ones = GroupMembers.of(one_signature, len(signature_keys))
    _check_one_side(many, one, ones, signature_keys, "left" if is_swapped else "right")
    pairs = _pairs(many, many_signature, one, ones)
    keys = _result_keys(pairs, matching, is_nameless=drops_name(operator, returns_bool=returns_bool))
    if not is_histogram_operator(operator):
        _check_many_side(pairs, keys, matching, len(signature_keys))
    if is_swapped:
        sides = one.values, pairs.one_rows, many.values, pairs.many_rows
    else:
        sides = many.values, pairs.many_rows, one.values, pairs.one_rows
    return merge_equal(keys, vector_with_vector(operator, *sides, returns_bool=returns_bool))


def _pairs(many: Vector, many_signature: Rows, one: Vector, ones: GroupMembers) -> _Pairs:
    max_pairs = int(np.diff(ones.first)[many_signature].sum())
    many_rows, one_rows = np.empty(max_pairs, dtype=np.int64), np.empty(max_pairs, dtype=np.int64)
    count = pair_rows(
        bits_for_reading(many.values),
        many_signature,
        bits_for_reading(one.values),
        ones.rows,
        ones.first,
        many_rows,
        one_rows,
    )
    return _Pairs(many, many_rows[:count], one, one_rows[:count], many_signature[many_rows[:count]])


def _result_keys(pairs: _Pairs, matching: Matching, *, is_nameless: bool) -> KeyBytes:
    """The labels of the "many" side (for one-to-one matching, only the matched ones), and the included labels of the
    "one" side. An included label without a value removes the label.
    """
    keys = pairs.many.keys
    if len(pairs.many_rows) != len(keys) or (np.diff(pairs.many_rows) != 1).any():
        keys = take_keys(keys, pairs.many_rows)
    dropped = METADATA_LABELS if is_nameless else ()
    if matching.cardinality is Cardinality.ONE_TO_ONE:
        if matching.is_on:
            return keeping(keys, [label for label in matching.labels if label not in dropped])
        return without(keys, (*matching.labels, *dropped))
    keys = without(keys, dropped) if dropped else keys
    for label in matching.include:
        keys = with_label(keys, label, label_values(pairs.one.keys, label), pairs.one_rows)
    return keys


def _check_one_side(many: Vector, one: Vector, ones: GroupMembers, signature_keys: KeyBytes, side: str) -> None:
    """Check that no signature has two samples on the "one" side, at steps where the "many" side has any sample."""
    if ones.are_single:
        return
    counts = np.zeros(many.values.shape[1], dtype=np.bool_)
    steps_with_samples(bits_for_reading(many.values), counts)
    bits, every = bits_for_reading(one.values), np.arange(len(one.keys), dtype=np.int64)
    step, signature = first_conflict(ones.rows, ones.first, bits, every, bits, every, counts)
    if step >= 0:
        rows = ones.rows[ones.first[signature] : ones.first[signature + 1]]
        _raise_duplicates(
            take_keys(one.keys, rows[~missing(one.values[rows, step])]), signature_keys.key(signature), side
        )


def _raise_duplicates(keys: KeyBytes, signature: bytes, side: str) -> NoReturn:
    some = [_shown_labels(keys.key(position)) for position in label_order(keys)[:2]]
    raise EvaluationError(
        f"found duplicate series for the match group {_shown_labels(signature)} on the {side} hand-side"
        f" of the operation: [{', '.join(sorted(some))}]"
        ";many-to-many matching not allowed: matching labels must be unique on one side"
    )


def _check_many_side(pairs: _Pairs, keys: KeyBytes, matching: Matching, signatures_count: int) -> None:
    """Check that only one sample of each signature is matched, or one of each label set with `group_left`. Results that
    a comparison filters out count, too.
    """
    if matching.cardinality is Cardinality.ONE_TO_ONE:
        if pairs.first_conflict(pairs.signature, signatures_count) >= 0:
            raise EvaluationError(
                "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)"
            )
        return
    number_of, first_of = distinct_keys(keys)
    if len(first_of) == len(keys):
        return
    _, group_of = np.unique(pairs.signature * len(first_of) + number_of, return_inverse=True)
    if pairs.first_conflict(group_of, len(keys)) >= 0:
        raise EvaluationError("multiple matches for labels: grouping labels must ensure unique matches")


def _and_unless(left: Vector, right: Vector, matching: Matching, *, is_wanted: bool) -> Vector:
    """The samples of the left side that have a match at the same step, or without `is_wanted` those that have none."""
    (left_signature, right_signature), keys = signatures([left.keys, right.keys], matching.labels, is_on=matching.is_on)
    present = _present(right.values, right_signature, len(keys))
    return _filtered(left, left_signature, present, is_wanted=is_wanted)


def _union(left: Vector, right: Vector, matching: Matching) -> Vector:
    """All samples of the left side, and those of the right side without a match at the same step. Equal label sets of
    both sides are merged.
    """
    (left_signature, right_signature), keys = signatures([left.keys, right.keys], matching.labels, is_on=matching.is_on)
    present = _present(left.values, left_signature, len(keys))
    added = _filtered(right, right_signature, present, is_wanted=False)
    return merge_equal(_joined_keys(left.keys, added.keys), np.concatenate([left.values, added.values]))


def _present(values: F64Matrix, signature: Rows, count: int) -> Bools:
    present = np.zeros((count, values.shape[1]), dtype=np.bool_)
    mark_present(bits_for_reading(values), signature, present)
    return present


def _filtered(vector: Vector, signature: Rows, present: Bools, *, is_wanted: bool) -> Vector:
    """The samples whose signature is present at their step, or is not. Series without remaining samples are dropped."""
    values = np.empty(vector.values.shape, dtype=np.float64)
    has_samples = np.empty(len(values), dtype=np.bool_)
    filter_rows(bits_for_reading(vector.values), signature, present, is_wanted, values.view(np.uint64), has_samples)
    if has_samples.all():
        return Vector(vector.keys, values)
    return Vector(take_keys(vector.keys, np.flatnonzero(has_samples)), values[has_samples])


def _joined_keys(one: KeyBytes, other: KeyBytes) -> KeyBytes:
    """The keys of the first, followed by those of the second."""
    first, second = (keys.offsets - keys.offsets[0] for keys in (one, other))
    offsets = np.concatenate([first, second[1:] + first[-1]])
    parts = [keys.data[keys.offsets[0] : keys.offsets[-1]] for keys in (one, other)]
    return KeyBytes(offsets, np.concatenate(parts))


def _shown_labels(key: bytes) -> str:
    """A label set as Prometheus' error messages show it: {__name__="up", job="api"}."""
    labels = decode_part_key(key).items()
    return "{" + ", ".join(f"{_shown_name(name)}={quoted(value)}" for name, value in labels) + "}"


def _shown_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)
