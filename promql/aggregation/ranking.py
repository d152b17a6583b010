"""topk and bottomk: the k best series of each group and step, with their own labels."""

from dataclasses import dataclass

import numpy as np

from strandline.arrays import I64s, Rows
from strandline.index.key_bytes import KeyBytes, label_order, take_keys
from strandline.promql.aggregation.spec import AggregationSpec, rows_by_group
from strandline.promql.expressions import Aggregator
from strandline.promql.kernels.ranking import rank
from strandline.promql.values import NO_SAMPLE, F64Matrix, Vector


@dataclass(frozen=True, slots=True)
class RankedState:
    """Candidates: series that are among the best of their group at some step. They have samples only at such steps."""

    keys: KeyBytes
    group_of: Rows
    candidates: Vector


@dataclass(frozen=True, slots=True)
class _Ranked:
    rows: Rows
    values: F64Matrix
    first_step: Rows
    """The rows that were chosen at the first step, group by group."""


def _ranked(aggregator: Aggregator, keys: KeyBytes, values: F64Matrix, group_of: Rows, limits: I64s) -> _Ranked:
    """The rows that are among the best of their group at any step."""
    groups = int(group_of.max(initial=-1)) + 1
    by_group, starts = rows_by_group(group_of, groups)
    for is_second in (False, True):
        chosen_values = np.full(values.shape, NO_SAMPLE)
        is_chosen, first_step = np.zeros(len(values), dtype=np.bool_), np.empty(len(values), dtype=np.int64)
        count, has_ties = rank(
            values,
            values.view(np.int64),
            by_group,
            starts,
            limits,
            -1.0 if aggregator is Aggregator.BOTTOMK else 1.0,
            chosen_values,
            is_chosen,
            first_step,
        )
        if is_second or not has_ties:
            break
        # Of equal values, the series whose labels sort first is better, so that results do not depend on the input's
        # order.
        order = label_order(keys)
        by_group = order[np.argsort(group_of[order], kind="stable")]
    return _Ranked(np.flatnonzero(is_chosen), chosen_values, first_step[:count])


class RankingAccumulator:
    """Keeps the candidates of the blocks so far."""

    def __init__(self, spec: AggregationSpec, steps: int) -> None:
        self._spec = spec
        self._limits = spec.limits
        self._candidates = Vector(
            KeyBytes(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)), np.empty((0, steps))
        )
        self._group_of: Rows = np.empty(0, dtype=np.int64)

    @property
    def held_bytes(self) -> int:
        """The size of the candidates."""
        return self._candidates.values.nbytes + self._candidates.keys.data.nbytes

    def add(self, values: F64Matrix, group_of: Rows, _groups: int, keys: KeyBytes) -> None:
        """Add a block of series."""
        found = _ranked(self._spec.aggregator, keys, values, group_of, self._limits)
        better = Vector(take_keys(keys, found.rows), found.values[found.rows])
        if not len(self._group_of):
            self._candidates, self._group_of = better, group_of[found.rows]
            return
        both = _concatenated(self._candidates, better)
        groups = np.concatenate((self._group_of, group_of[found.rows]))
        kept = _ranked(self._spec.aggregator, both.keys, both.values, groups, self._limits)
        self._candidates = Vector(take_keys(both.keys, kept.rows), kept.values[kept.rows])
        self._group_of = groups[kept.rows]

    def merge_state(self, state: RankedState, group_of: Rows, groups: int) -> None:
        """Merge a state. `group_of` maps its groups to the groups of this accumulator."""
        self.add(state.candidates.values, group_of[state.group_of], groups, state.candidates.keys)

    def state(self, keys: KeyBytes) -> RankedState:
        """The candidates so far."""
        return RankedState(keys, self._group_of, self._candidates)


def _concatenated(one: Vector, other: Vector) -> Vector:
    keys = KeyBytes(
        np.concatenate((one.keys.offsets, other.keys.offsets[1:] + one.keys.offsets[-1])),
        np.concatenate((one.keys.data, other.keys.data)),
    )
    return Vector(keys, np.concatenate((one.values, other.values)))


def finish_ranked(spec: AggregationSpec, state: RankedState) -> Vector:
    """The best series. With a single step, their order is that of Prometheus: group by group, best first. Groups and
    equal values are in the order of labels.
    """
    found = state.candidates
    if found.values.shape[1] != 1 or not len(found.keys):
        return found
    in_order = label_order(found.keys)
    keys, values, group_of = take_keys(found.keys, in_order), found.values[in_order], state.group_of[in_order]
    _, first_row, number = np.unique(group_of, return_index=True, return_inverse=True)
    group_of = first_row[number]
    rows = _ranked(spec.aggregator, keys, values, group_of, spec.limits).first_step
    # NaN is the worst value.
    sort_key = values[rows, 0] if spec.aggregator is Aggregator.BOTTOMK else -values[rows, 0]
    order = rows[np.lexsort((rows, sort_key, group_of[rows]))]
    return Vector(take_keys(keys, order), values[order])
