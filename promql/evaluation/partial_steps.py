"""Partial results restricted to some steps, and joined with those of later steps.

Steps do not depend on each other, so the result over a grid consists of the results over its first steps and its other
steps: the same cells, except for the order of series and groups. Series and groups without a sample are dropped.
"""

from typing import TypeVar

import numpy as np

from strandline.arrays import Bools, F64s, Rows
from strandline.index.key_bytes import KeyBytes, take_keys
from strandline.promql import annotations
from strandline.promql.aggregation.counting import CountedState
from strandline.promql.aggregation.folding import INITIAL, FoldedState
from strandline.promql.aggregation.quantiles import ValuesState
from strandline.promql.aggregation.ranking import RankedState
from strandline.promql.aggregation.spec import rows_by_group
from strandline.promql.aggregations import State
from strandline.promql.evaluation.partials import Partial, RowsFold
from strandline.promql.evaluation.rows import sample_counts, with_samples
from strandline.promql.labels import GroupTable
from strandline.promql.plan.fragments import Fragment
from strandline.promql.values import NO_SAMPLE, F64Matrix, Vector

Result = TypeVar("Result", Vector, FoldedState, RankedState, ValuesState, CountedState)


def slice_steps(fragment: Fragment, partial: Partial, first: int) -> Partial:
    """The result for the steps of `fragment`, which begin at step `first` of `partial`."""
    return _partial(fragment, _slice(fragment, partial.result, first, fragment.ends.count), partial.annotations)


def join_steps(fragment: Fragment, earlier: Partial, first: int, later: Partial) -> Partial:
    """The result for the steps of `fragment`: those of `earlier` from its step `first` on, then those of `later`."""
    later_count = _matrices(later.result)[0].shape[1]
    parts = (
        _slice(fragment, earlier.result, first, fragment.ends.count - later_count),
        _slice(fragment, later.result, 0, later_count),
    )
    return _partial(fragment, _joined(fragment, *parts), earlier.annotations | later.annotations)


def cells_in(partial: Partial) -> int:
    """The number of cells in a result."""
    return sum(one.size for one in _matrices(partial.result))


def bytes_of(partial: Partial) -> int:
    """The approximate size of a result in bytes."""
    result = partial.result
    keys = [result.keys, *([result.candidates.keys] if isinstance(result, RankedState) else [])]
    return 8 * cells_in(partial) + sum(one.data.nbytes + 3 * one.offsets.nbytes for one in keys)


def _partial(fragment: Fragment, result: Vector | State, found: annotations.Annotations) -> Partial:
    """A partial result with the annotations of these steps only."""
    if isinstance(result, Vector):
        rows = RowsFold(fragment)
        rows.add(result.keys, result.values)
        return rows.partial()
    # All series of an aggregation have one name, or its function has no annotations about names. So the annotations do
    # not depend on which series had samples.
    return Partial(result, found if any(map(len, _matrices(result))) else annotations.NONE)


def _matrices(result: Vector | State) -> tuple[F64Matrix, ...]:
    match result:
        case Vector(values=values) | ValuesState(values=values):
            return (values,)
        case FoldedState(columns=columns):
            return columns
        case RankedState(candidates=candidates):
            return (candidates.values,)
        case CountedState(counts=counts):
            return (counts,)


def _slice(fragment: Fragment, result: Vector | State, first: int, count: int) -> Vector | State:
    def sliced(values: F64Matrix) -> F64Matrix:
        return np.ascontiguousarray(values[:, first : first + count])

    match result:
        case Vector(keys=keys, values=all_values):
            return with_samples(Vector(keys, sliced(all_values)))
        case FoldedState(keys=keys, columns=columns):
            new_columns, initial = tuple(map(sliced, columns)), _initial(fragment)
            is_there: Bools = np.zeros(len(keys), dtype=np.bool_)
            for column, fill in zip(new_columns, initial, strict=True):
                is_there |= (column.view(np.int64) != np.float64(fill).view(np.int64)).any(axis=1)
            rows = np.flatnonzero(is_there)
            return FoldedState(take_keys(keys, rows), tuple(column[rows] for column in new_columns))
        case RankedState(keys=keys, group_of=group_of, candidates=candidates):
            values = sliced(candidates.values)
            rows = np.flatnonzero(sample_counts(values))
            keys, group_of = _used_groups(keys, group_of[rows])
            return RankedState(keys, group_of, with_samples(Vector(candidates.keys, values)))
        case ValuesState(keys=keys, group_of=group_of, values=all_values):
            values = sliced(all_values)
            rows = np.flatnonzero(sample_counts(values))
            return ValuesState(*_used_groups(keys, group_of[rows]), _take_rows(values, rows))
        case CountedState(keys=keys, group_of=group_of, value=value, counts=counts):
            sliced_counts = sliced(counts)
            rows = np.flatnonzero(sliced_counts.any(axis=1))
            return CountedState(*_used_groups(keys, group_of[rows]), value[rows], _take_rows(sliced_counts, rows))


def _take_rows(values: F64Matrix, rows: Rows) -> F64Matrix:
    return values if len(rows) == len(values) else values[rows]


def _used_groups(keys: KeyBytes, group_of: Rows) -> tuple[KeyBytes, Rows]:
    """Only the groups that have rows."""
    used, numbers = np.unique(group_of, return_inverse=True)
    return take_keys(keys, used), numbers.astype(np.int64)


def _joined(fragment: Fragment, earlier: Vector | State, later: Vector | State) -> Vector | State:
    table = GroupTable.of_whole_keys()
    earlier_groups, later_groups = table.add(earlier.keys), table.add(later.keys)
    match earlier, later:
        case Vector(), Vector():
            rows = _RowUnion(earlier_groups, later_groups)
            return Vector(table.keys, rows.concatenated(earlier.values, later.values, NO_SAMPLE))
        case FoldedState(), FoldedState():
            rows = _RowUnion(earlier_groups, later_groups)
            columns = zip(earlier.columns, later.columns, _initial(fragment), strict=True)
            return FoldedState(table.keys, tuple(rows.concatenated(*one) for one in columns))
        case RankedState(), RankedState():
            series = GroupTable.of_whole_keys()
            rows = _RowUnion(series.add(earlier.candidates.keys), series.add(later.candidates.keys))
            values = rows.concatenated(earlier.candidates.values, later.candidates.values, NO_SAMPLE)
            group_of = rows.either(earlier_groups[earlier.group_of], later_groups[later.group_of])
            return RankedState(table.keys, group_of, Vector(series.keys, values))
        case ValuesState(), ValuesState():
            # It does not matter which series a value belongs to: the rows of a group are filled one by one.
            sides = earlier_groups[earlier.group_of], later_groups[later.group_of]
            rows = _RowUnion.numbered(
                *(np.stack((one, _positions_in_groups(one, len(table))), axis=1) for one in sides)
            )
            values = rows.concatenated(earlier.values, later.values, NO_SAMPLE)
            return ValuesState(table.keys, rows.either(*sides), values)
        case CountedState(), CountedState():
            sides = earlier_groups[earlier.group_of], later_groups[later.group_of]
            bits = earlier.value.view(np.int64), later.value.view(np.int64)
            rows = _RowUnion.numbered(*(np.stack(one, axis=1) for one in zip(sides, bits, strict=True)))
            value: F64s = rows.either(*bits).view(np.float64)
            return CountedState(
                table.keys, rows.either(*sides), value, rows.concatenated(earlier.counts, later.counts, 0.0)
            )
        case _:
            raise TypeError(f"a {type(later).__name__} after a {type(earlier).__name__}")


class _RowUnion:
    """The union of the rows of two results. Rows with equal numbers become one row."""

    def __init__(self, earlier: Rows, later: Rows) -> None:
        self._earlier, self._later = earlier, later
        self._count = int(max(earlier.max(initial=-1), later.max(initial=-1))) + 1

    @classmethod
    def numbered(cls, earlier: Rows, later: Rows) -> "_RowUnion":
        """For rows that are identified by two numbers."""
        _, numbers = np.unique(np.concatenate((earlier, later)), axis=0, return_inverse=True)
        numbers = numbers.reshape(-1).astype(np.int64)
        return cls(numbers[: len(earlier)], numbers[len(earlier) :])

    def concatenated(self, earlier: F64Matrix, later: F64Matrix, fill: float) -> F64Matrix:
        """The cells of both results, with `fill` for rows that a result lacks."""
        steps = earlier.shape[1]
        out = np.full((self._count, steps + later.shape[1]), fill)
        out[self._earlier, :steps] = earlier
        out[self._later, steps:] = later
        return out

    def either(self, earlier: Rows, later: Rows) -> Rows:
        """A property that joined rows have in common."""
        out = np.empty(self._count, dtype=np.int64)
        out[self._earlier] = earlier
        out[self._later] = later
        return out


def _positions_in_groups(group_of: Rows, groups: int) -> Rows:
    """The position of each row among the rows of its group."""
    by_group, starts = rows_by_group(group_of, groups)
    positions = np.empty(len(group_of), dtype=np.int64)
    positions[by_group] = np.arange(len(group_of)) - starts[group_of[by_group]]
    return positions


def _initial(fragment: Fragment) -> tuple[float, ...]:
    if fragment.grouping is None:
        raise TypeError("the fragment does not aggregate")
    return INITIAL[fragment.grouping.aggregator]
