"""count_values: the number of series in a group that have each value."""

from dataclasses import dataclass

import numpy as np

from strandline.arrays import F64s, Rows
from strandline.index.key_bytes import KeyBytes, take_keys
from strandline.promql.aggregation.spec import AggregationSpec
from strandline.promql.kernels.counting import count_values, fill_pairs, merge_counts
from strandline.promql.labels import Texts, with_label
from strandline.promql.values import NO_SAMPLE, F64Matrix, Vector


@dataclass(frozen=True, slots=True)
class CountedState:
    """Row i of `counts`: the number of series of group `group_of[i]` that have `value[i]` at each step. Pairs of group
    and value are distinct.
    """

    keys: KeyBytes
    group_of: Rows
    value: F64s
    counts: F64Matrix


class CountingAccumulator:
    """Counts the values of blocks. Its size grows with the number of distinct values."""

    def __init__(self, steps: int) -> None:
        self._pairs = 0
        self._slots = np.zeros(0, dtype=np.int64)
        self._groups, self._bits = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._counts = np.empty((0, steps))

    @property
    def held_bytes(self) -> int:
        """The size of the counts."""
        return self._counts.nbytes

    def add(self, values: F64Matrix, group_of: Rows, _groups: int, _keys: KeyBytes) -> None:
        """Count a block of series."""
        row, bits = 0, values.view(np.int64)
        while row < len(group_of):
            self._reserve(values.shape[1])
            row, self._pairs = count_values(
                values, bits, group_of, row, self._slots, self._groups, self._bits, self._counts, self._pairs
            )

    def merge_state(self, state: CountedState, group_of: Rows, _groups: int) -> None:
        """Merge a state. `group_of` maps its groups to the groups of this accumulator."""
        self._reserve(len(state.value))
        groups, bits = group_of[state.group_of], state.value.view(np.int64)
        self._pairs = merge_counts(
            groups, bits, state.counts, self._slots, self._groups, self._bits, self._counts, self._pairs
        )

    def state(self, keys: KeyBytes) -> CountedState:
        """The counts so far."""
        pairs = self._pairs
        return CountedState(keys, self._groups[:pairs], self._bits[:pairs].view(np.float64), self._counts[:pairs])

    def _reserve(self, more: int) -> None:
        pairs, held = self._pairs, len(self._groups)
        if pairs + more <= held:
            return
        room = max(pairs + more, 2 * held)
        groups, bits = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        counts = np.zeros((room, self._counts.shape[1]))
        groups[:pairs], bits[:pairs], counts[:pairs] = self._groups[:pairs], self._bits[:pairs], self._counts[:pairs]
        self._groups, self._bits, self._counts = groups, bits, counts
        self._slots = np.zeros(1 << (2 * room).bit_length(), dtype=np.int64)
        fill_pairs(self._slots, groups, bits, pairs)


def finish_counted(spec: AggregationSpec, state: CountedState) -> Vector:
    """One series for each group and value, with the value as a label."""
    if spec.drops_value_label:
        totals = np.zeros((len(state.keys), state.counts.shape[1]))
        np.add.at(totals, state.group_of, state.counts)
        return Vector(state.keys, np.where(totals > 0, totals, NO_SAMPLE))
    numbers, number_of = np.unique(state.value.view(np.int64), return_inverse=True)
    texts = Texts.of(go_decimal(number).encode() for number in numbers.view(np.float64).tolist())
    keys = with_label(take_keys(state.keys, state.group_of), spec.value_label, texts, number_of.astype(np.int64))
    return Vector(keys, np.where(state.counts > 0, state.counts, NO_SAMPLE))


def go_decimal(value: float) -> str:
    """Go's format `f` with the fewest digits that parse back to the same number; never with an exponent."""
    if np.isfinite(value):
        return np.format_float_positional(value, trim="-")
    return "NaN" if np.isnan(value) else "+Inf" if value > 0 else "-Inf"
