"""Partial results: the result of a fragment in one shard, computed from blocks of series, and their merging.

Of a block, only its rows are kept or, with an aggregation, the state that they are folded into.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from strandline.arrays import Rows
from strandline.index.key_bytes import KeyBytes, joined_keys
from strandline.promql import annotations
from strandline.promql.aggregation.spec import RANKING
from strandline.promql.aggregations import GroupedAccumulator, State, finish, merge
from strandline.promql.annotations import Annotations
from strandline.promql.evaluation.annotation_collector import AnnotationCollector
from strandline.promql.evaluation.fragment_rows import fragment_rows, numbers
from strandline.promql.evaluation.rows import with_samples
from strandline.promql.expressions import Aggregator
from strandline.promql.labels import METADATA_LABELS, GroupTable, without_name
from strandline.promql.plan.fragments import LATEST, Fragment, Grouping, fixed_name
from strandline.promql.values import F64Matrix, Samples, Vector

_COUNTED = frozenset({Aggregator.COUNT, Aggregator.GROUP})
_NO_KEYS = KeyBytes(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8))


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial result: the state of an aggregation; or rows of series with at least one sample, with stored keys."""

    result: Vector | State
    annotations: Annotations = annotations.NONE


def group_table(fragment: Fragment) -> GroupTable:
    """An empty table of the groups of a fragment's aggregation, for stored keys."""
    grouping = _grouping(fragment)
    labels = grouping.labels
    if fragment.drops_name:
        # Stored keys still have the labels that the rows have lost.
        labels = (
            (*labels, *METADATA_LABELS)
            if grouping.is_without
            else tuple(one for one in labels if one not in METADATA_LABELS)
        )
    return replace(grouping.spec(fragment.ends.count), labels=labels).group_table()


def needs_keys(fragment: Fragment) -> bool:
    """Whether rows have to be added with their keys, and not only with their groups."""
    return fragment.grouping is None or fragment.grouping.aggregator in RANKING


def depends_on_values(fragment: Fragment) -> bool:
    """Whether the result depends on values. If not, the times of samples and staleness markers suffice."""
    is_counted = fragment.grouping is not None and fragment.grouping.aggregator in _COUNTED
    return not (is_counted and fragment.function == LATEST and not fragment.chain)


class RowsFold:
    """The rows of a fragment that does not aggregate."""

    def __init__(self, fragment: Fragment) -> None:
        self._fragment = fragment
        self._rows: list[Vector] = []
        self._collector = _collector(fragment)

    @property
    def cells(self) -> int:
        """The number of cells held."""
        return sum(one.values.size for one in self._rows)

    def add(self, keys: KeyBytes, values: F64Matrix) -> None:
        """Add the rows of a block that have a sample."""
        rows = with_samples(Vector(keys, values))
        self._collector.collect(rows.values, rows.keys)
        self._rows.append(rows)

    def partial(self) -> Partial:
        """All rows so far."""
        return Partial(_joined(self._rows, self._fragment.ends.count), self._collector.annotations())


class GroupedFold:
    """The state of a fragment that aggregates. `groups` contains the groups of all series."""

    def __init__(self, fragment: Fragment, groups: KeyBytes) -> None:
        self._fragment, steps = fragment, fragment.ends.count
        spec = _grouping(fragment).spec(steps)
        spec.check()
        self._is_ranking = spec.aggregator in RANKING
        self._accumulator = GroupedAccumulator(spec, steps, groups)
        self._collector = _collector(fragment)

    @property
    def held_bytes(self) -> int:
        """The approximate size of the state."""
        return self._accumulator.held_bytes

    def add(self, keys: KeyBytes, values: F64Matrix, group_of: Rows) -> None:
        """Fold a block. `keys` are only read if the fragment `needs_keys`."""
        if self._is_ranking and self._fragment.drops_name:
            self._accumulator.add(without_name(keys), values, group_of)
        else:
            self._accumulator.add(keys, values, group_of)
        self._collector.collect(values)

    def partial(self) -> Partial:
        """The state so far."""
        return Partial(self._accumulator.state(), self._collector.annotations())


def evaluate_partial(fragment: Fragment, samples: Samples) -> Partial:
    """Evaluate a fragment over samples in memory."""
    values = fragment_rows(fragment, samples)
    if fragment.grouping is None:
        rows = RowsFold(fragment)
        rows.add(samples.keys, values)
        return rows.partial()
    table = group_table(fragment)
    group_of = table.add(samples.keys)
    folded = GroupedFold(fragment, table.keys)
    folded.add(samples.keys, values, group_of)
    return folded.partial()


def merged(fragment: Fragment, partials: Sequence[Partial]) -> tuple[Vector, Annotations]:
    """Merge the partial results of several shards, which have no series in common."""
    found = annotations.NONE
    for one in partials:
        found |= one.annotations.at(fragment.span)
    if fragment.grouping is None:
        vectors = [one.result for one in partials if isinstance(one.result, Vector)]
        return _joined(vectors, fragment.ends.count), found
    spec = fragment.grouping.spec(fragment.ends.count)
    spec.check()
    states = [one.result for one in partials if not isinstance(one.result, Vector)]
    # A shard may return groups without samples, unless a part of its result comes from the result cache.
    vector = with_samples(finish(spec, merge(spec, fragment.ends.count, states)))
    if spec.aggregator is Aggregator.QUANTILE and len(vector.keys):
        span = fragment.grouping.span
        found |= Annotations(annotations.invalid_quantile(one, span) for one in spec.invalid_quantiles())
    return vector, found


def _joined(rows: Sequence[Vector], steps: int) -> Vector:
    """All rows, concatenated."""
    if len(rows) == 1:
        return rows[0]
    keys = joined_keys([_NO_KEYS, *(one.keys for one in rows)])
    return Vector(keys, np.concatenate([np.empty((0, steps)), *(one.values for one in rows)]))


def _grouping(fragment: Fragment) -> Grouping:
    if fragment.grouping is None:
        raise TypeError("the fragment does not aggregate")
    return fragment.grouping


def _collector(fragment: Fragment) -> AnnotationCollector:
    parameters = numbers(fragment.parameters, fragment.ends.count)
    return AnnotationCollector(fragment.function, parameters, fixed_name(fragment.matchers))
