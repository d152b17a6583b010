"""Aggregation of vectors: accumulators for blocks of series, merging of shards' states, and the resulting vector."""

from collections.abc import Sequence

from strandline.arrays import Rows
from strandline.index.key_bytes import KeyBytes
from strandline.promql.aggregation.counting import CountedState, CountingAccumulator, finish_counted
from strandline.promql.aggregation.folding import INITIAL, FoldedState, FoldingAccumulator, finish_folded
from strandline.promql.aggregation.quantiles import ValuesAccumulator, ValuesState, finish_quantiles
from strandline.promql.aggregation.ranking import RankedState, RankingAccumulator, finish_ranked
from strandline.promql.aggregation.spec import RANKING, AggregationSpec
from strandline.promql.errors import EvaluationError
from strandline.promql.expressions import Aggregator
from strandline.promql.labels import GroupTable
from strandline.promql.values import F64Matrix, Vector

State = FoldedState | RankedState | ValuesState | CountedState
"""The intermediate state of an aggregation. `keys` are the labels of the groups."""


class Accumulator:
    """Aggregates blocks of series at the same steps. Keeps only what the aggregation needs."""

    def __init__(self, spec: AggregationSpec, steps: int) -> None:
        self._table = spec.group_table()
        self._accumulator = _accumulator(spec, steps)

    @property
    def held_bytes(self) -> int:
        """About how many bytes it holds."""
        return self._accumulator.held_bytes

    def add(self, keys: KeyBytes, values: F64Matrix) -> None:
        """Aggregate a block of series; `values` is in C order. For topk and bottomk, each series may be added once."""
        group_of = self._table.add(keys)
        self._accumulator.add(values, group_of, len(self._table), keys)

    def state(self) -> State:
        """The state so far. Later calls of `add` may change it."""
        return self._accumulator.state(self._table.keys)


class GroupedAccumulator:
    """The same for a caller that already knows the groups of its series."""

    def __init__(self, spec: AggregationSpec, steps: int, groups: KeyBytes) -> None:
        self._keys = groups
        self._accumulator = _accumulator(spec, steps)

    @property
    def held_bytes(self) -> int:
        """About how many bytes it holds."""
        return self._accumulator.held_bytes

    def add(self, keys: KeyBytes, values: F64Matrix, group_of: Rows) -> None:
        """Aggregate a block of series."""
        self._accumulator.add(values, group_of, len(self._keys), keys)

    def state(self) -> State:
        """The state so far. Groups without series have no samples."""
        return self._accumulator.state(self._keys)


def _accumulator(
    spec: AggregationSpec, steps: int
) -> FoldingAccumulator | RankingAccumulator | ValuesAccumulator | CountingAccumulator:
    if spec.aggregator in INITIAL:
        return FoldingAccumulator(spec.aggregator, steps)
    if spec.aggregator in RANKING:
        return RankingAccumulator(spec, steps)
    if spec.aggregator is Aggregator.QUANTILE:
        return ValuesAccumulator(steps)
    if spec.aggregator is Aggregator.COUNT_VALUES:
        return CountingAccumulator(steps)
    raise EvaluationError(f"{spec.aggregator} is experimental and not supported")


def accumulate(spec: AggregationSpec, vector: Vector) -> State:
    """The state of a complete vector."""
    accumulator = Accumulator(spec, vector.values.shape[1])
    accumulator.add(vector.keys, vector.values)
    return accumulator.state()


def merge(spec: AggregationSpec, steps: int, states: Sequence[State]) -> State:
    """Merge states that have no series in common."""
    accumulator, table = _accumulator(spec, steps), GroupTable.of_whole_keys()
    for state in states:
        group_of = table.add(state.keys)
        match accumulator, state:
            case FoldingAccumulator(), FoldedState():
                accumulator.merge_state(state, group_of, len(table))
            case RankingAccumulator(), RankedState():
                accumulator.merge_state(state, group_of, len(table))
            case ValuesAccumulator(), ValuesState():
                accumulator.merge_state(state, group_of, len(table))
            case CountingAccumulator(), CountedState():
                accumulator.merge_state(state, group_of, len(table))
            case _:
                raise TypeError(f"{type(state).__name__} is not a state of {spec.aggregator}")
    return accumulator.state(table.keys)


def finish(spec: AggregationSpec, state: State) -> Vector:
    """The aggregated vector. A group has no sample at steps where none of its series has one."""
    match state:
        case FoldedState():
            return finish_folded(spec.aggregator, state)
        case RankedState():
            return finish_ranked(spec, state)
        case ValuesState():
            return finish_quantiles(spec, state)
        case CountedState():
            return finish_counted(spec, state)


def aggregate(spec: AggregationSpec, vector: Vector) -> Vector:
    """Aggregate a complete vector."""
    return finish(spec, accumulate(spec, vector))
