"""quantile. It is exact, so the state holds all values."""

from dataclasses import dataclass

import numpy as np

from strandline.arrays import Rows
from strandline.index.key_bytes import KeyBytes
from strandline.promql.aggregation.spec import AggregationSpec, rows_by_group
from strandline.promql.kernels.group_quantiles import quantiles
from strandline.promql.values import F64Matrix, Vector


@dataclass(frozen=True, slots=True)
class ValuesState:
    """All values: row i belongs to group `group_of[i]`."""

    keys: KeyBytes
    group_of: Rows
    values: F64Matrix


class ValuesAccumulator:
    """Collects the values of all blocks."""

    def __init__(self, steps: int) -> None:
        self._values = [np.empty((0, steps))]
        self._group_of: list[Rows] = [np.empty(0, dtype=np.int64)]

    @property
    def held_bytes(self) -> int:
        """The size of the values."""
        return sum(values.nbytes for values in self._values)

    def add(self, values: F64Matrix, group_of: Rows, _groups: int, _keys: KeyBytes) -> None:
        """Add a block of series. Keeps a reference to its matrix, not a copy."""
        self._values.append(values)
        self._group_of.append(group_of)

    def merge_state(self, state: ValuesState, group_of: Rows, groups: int) -> None:
        """Merge a state. `group_of` maps its groups to the groups of this accumulator."""
        self.add(state.values, group_of[state.group_of], groups, state.keys)

    def state(self, keys: KeyBytes) -> ValuesState:
        """All values so far."""
        if len(self._values) == 2:
            return ValuesState(keys, self._group_of[1], self._values[1])
        return ValuesState(keys, np.concatenate(self._group_of), np.concatenate(self._values))


def finish_quantiles(spec: AggregationSpec, state: ValuesState) -> Vector:
    """The quantile of each group and step."""
    by_group, starts = rows_by_group(state.group_of, len(state.keys))
    out = np.empty((len(state.keys), state.values.shape[1]))
    quantiles(state.values, state.values.view(np.int64), by_group, starts, spec.numbers, out)
    return Vector(state.keys, out)
