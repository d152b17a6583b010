"""Partial results cut to some of their steps, and joined with those of the steps behind them.

Steps do not depend on each other, so that the result over a grid is that over its first steps beside that over the
others: the same cells, but for the order of series and groups. Those without a sample are left out.
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
    """A result over those of its steps that `fragment` has, beginning with this one."""
    return _partial(fragment, _cut(fragment, partial.result, first, fragment.ends.count), partial.annotations)


def join_steps(fragment: Fragment, earlier: Partial, first: int, later: Partial) -> Partial:
    """The result over the steps of `fragment`, the last of which are those of `later`; `earlier` has the others, from
    this one of its own on.
    """
    later_count = _matrices(later.result)[0].shape[1]
    parts = (
        _cut(fragment, earlier.result, first, fragment.ends.count - later_count),
        _cut(fragment, later.result, 0, later_count),
    )
    return _partial(fragment, _joined(fragment, *parts), earlier.annotations | later.annotations)


def cells_in(partial: Partial) -> int:
    """How many cells a result holds."""
    return sum(one.size for one in _matrices(partial.result))


def bytes_of(partial: Partial) -> int:
    """About how many bytes a result takes."""
    result = partial.result
    keys = [result.keys, *([result.candidates.keys] if isinstance(result, RankedState) else [])]
    return 8 * cells_in(partial) + sum(one.data.nbytes + 3 * one.offsets.nbytes for one in keys)


def _partial(fragment: Fragment, result: Vector | State, found: annotations.Annotations) -> Partial:
    """With what there is to tell of these steps alone."""
    if isinstance(result, Vector):
        rows = RowsFold(fragment)
        rows.add(result.keys, result.values)
        return rows.partial()
    # All series of an aggregation have one name, or its function tells nothing of names: it is found or it is not,
    # whatever series had the sample.
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


def _cut(fragment: Fragment, result: Vector | State, first: int, count: int) -> Vector | State:
    def of(values: F64Matrix) -> F64Matrix:
        return np.ascontiguousarray(values[:, first : first + count])

    match result:
        case Vector(keys=keys, values=every):
            return with_samples(Vector(keys, of(every)))
        case FoldedState(keys=keys, columns=columns):
            cut, initial = tuple(map(of, columns)), _initial(fragment)
            is_there: Bools = np.zeros(len(keys), dtype=np.bool_)
            for column, fill in zip(cut, initial, strict=True):
                is_there |= (column.view(np.int64) != np.float64(fill).view(np.int64)).any(axis=1)
            rows = np.flatnonzero(is_there)
            return FoldedState(take_keys(keys, rows), tuple(column[rows] for column in cut))
        case RankedState(keys=keys, group_of=group_of, candidates=candidates):
            values = of(candidates.values)
            rows = np.flatnonzero(sample_counts(values))
            keys, group_of = _groups(keys, group_of[rows])
            return RankedState(keys, group_of, with_samples(Vector(candidates.keys, values)))
        case ValuesState(keys=keys, group_of=group_of, values=every):
            values = of(every)
            rows = np.flatnonzero(sample_counts(values))
            return ValuesState(*_groups(keys, group_of[rows]), _taken(values, rows))
        case CountedState(keys=keys, group_of=group_of, value=value, counts=counts):
            cut_counts = of(counts)
            rows = np.flatnonzero(cut_counts.any(axis=1))
            return CountedState(*_groups(keys, group_of[rows]), value[rows], _taken(cut_counts, rows))


def _taken(values: F64Matrix, rows: Rows) -> F64Matrix:
    return values if len(rows) == len(values) else values[rows]


def _groups(keys: KeyBytes, group_of: Rows) -> tuple[KeyBytes, Rows]:
    """Only the groups that some row is in."""
    used, numbers = np.unique(group_of, return_inverse=True)
    return take_keys(keys, used), numbers.astype(np.int64)


def _joined(fragment: Fragment, earlier: Vector | State, later: Vector | State) -> Vector | State:
    table = GroupTable.of_whole_keys()
    here, there = table.add(earlier.keys), table.add(later.keys)
    match earlier, later:
        case Vector(), Vector():
            rows = _RowUnion(here, there)
            return Vector(table.keys, rows.concatenated(earlier.values, later.values, NO_SAMPLE))
        case FoldedState(), FoldedState():
            rows = _RowUnion(here, there)
            columns = zip(earlier.columns, later.columns, _initial(fragment), strict=True)
            return FoldedState(table.keys, tuple(rows.concatenated(*one) for one in columns))
        case RankedState(), RankedState():
            series = GroupTable.of_whole_keys()
            rows = _RowUnion(series.add(earlier.candidates.keys), series.add(later.candidates.keys))
            values = rows.concatenated(earlier.candidates.values, later.candidates.values, NO_SAMPLE)
            group_of = rows.either(here[earlier.group_of], there[later.group_of])
            return RankedState(table.keys, group_of, Vector(series.keys, values))
        case ValuesState(), ValuesState():
            # Which series a value is of does not count: rows of a group are filled one by one.
            sides = here[earlier.group_of], there[later.group_of]
            rows = _RowUnion.numbered(
                *(np.stack((one, _positions_in_groups(one, len(table))), axis=1) for one in sides)
            )
            values = rows.concatenated(earlier.values, later.values, NO_SAMPLE)
            return ValuesState(table.keys, rows.either(*sides), values)
        case CountedState(), CountedState():
            sides = here[earlier.group_of], there[later.group_of]
            bits = earlier.value.view(np.int64), later.value.view(np.int64)
            rows = _RowUnion.numbered(*(np.stack(one, axis=1) for one in zip(sides, bits, strict=True)))
            value: F64s = rows.either(*bits).view(np.float64)
            return CountedState(
                table.keys, rows.either(*sides), value, rows.concatenated(earlier.counts, later.counts, 0.0)
            )
        case _:
            raise TypeError(f"a {type(later).__name__} after a {type(earlier).__name__}")


class _RowUnion:
    """Which rows of two results become one, by their numbers."""

    def __init__(self, earlier: Rows, later: Rows) -> None:
        self._earlier, self._later = earlier, later
        self._count = int(max(earlier.max(initial=-1), later.max(initial=-1))) + 1

    @classmethod
    def numbered(cls, earlier: Rows, later: Rows) -> "_RowUnion":
        """Of rows that are found by two numbers."""
        _, numbers = np.unique(np.concatenate((earlier, later)), axis=0, return_inverse=True)
        numbers = numbers.reshape(-1).astype(np.int64)
        return cls(numbers[: len(earlier)], numbers[len(earlier) :])

    def concatenated(self, earlier: F64Matrix, later: F64Matrix, fill: float) -> F64Matrix:
        """The cells of both, and `fill` where a row has none."""
        steps = earlier.shape[1]
        out = np.full((self._count, steps + later.shape[1]), fill)
        out[self._earlier, :steps] = earlier
        out[self._later, steps:] = later
        return out

    def either(self, earlier: Rows, later: Rows) -> Rows:
        """What rows have in common."""
        out = np.empty(self._count, dtype=np.int64)
        out[self._earlier] = earlier
        out[self._later] = later
        return out


def _positions_in_groups(group_of: Rows, groups: int) -> Rows:
    """The place of each row among those of its group."""
    by_group, starts = rows_by_group(group_of, groups)
    places = np.empty(len(group_of), dtype=np.int64)
    places[by_group] = np.arange(len(group_of)) - starts[group_of[by_group]]
    return places


def _initial(fragment: Fragment) -> tuple[float, ...]:
    if fragment.grouping is None:
        raise TypeError("the fragment does not aggregate")
    return INITIAL[fragment.grouping.aggregator]
