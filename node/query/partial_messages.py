"""Partial results of fragments as columns of a frame, and back. Columns are checked for fitting together, so that no
kernel reads past their end.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from strandline.arrays import I64s, Rows
from strandline.index.key_bytes import KeyBytes
from strandline.node.query.frames import Column, FrameDamaged
from strandline.promql.aggregation.counting import CountedState
from strandline.promql.aggregation.folding import FoldedState
from strandline.promql.aggregation.quantiles import ValuesState
from strandline.promql.aggregation.ranking import RankedState
from strandline.promql.aggregations import State
from strandline.promql.annotations import Annotation, Annotations, Level
from strandline.promql.evaluation.partials import Partial
from strandline.promql.values import F64Matrix, Vector

Keys = Callable[[I64s, Any], KeyBytes]
"""Checks two columns and makes keys of them."""


def partial_columns(partial: Partial) -> tuple[dict[str, Any], tuple[Column, ...]]:
    """The fields and the columns of a partial result."""
    result = partial.result
    steps, columns = _columns(result)
    annotations = [[one.level.value, one.text] for one in partial.annotations]
    return {"result": _NAMES[type(result)], "steps": steps, "annotations": annotations}, columns


def partial_of(fields: Mapping[str, Any], columns: Sequence[Column], keys: Keys) -> Partial:
    """The partial result of a message. Raises `FrameDamaged`, and errors that `Fields.get` converts to it."""
    steps = fields["steps"]
    if type(steps) is not int or steps < 0:
        raise ValueError(f"{steps!r} is not a number of steps")
    annotations = Annotations(Annotation(Level(level), str(text)) for level, text in fields["annotations"])
    reader = _Reader(columns, steps, keys)
    partial = Partial(_READERS[fields["result"]](reader), annotations)
    if reader.left:
        raise FrameDamaged(f"a partial result has {reader.left} surplus columns")
    return partial


_NAMES: dict[type, str] = {
    Vector: "rows",
    FoldedState: "folded",
    RankedState: "ranked",
    ValuesState: "values",
    CountedState: "counted",
}


def _columns(result: Vector | State) -> tuple[int, tuple[Column, ...]]:
    keys = (result.keys.offsets, result.keys.data)
    match result:
        case Vector(values=values):
            return values.shape[1], (*keys, _flat(values))
        case FoldedState(columns=columns):
            return columns[0].shape[1], (*keys, *map(_flat, columns))
        case RankedState(group_of=group_of, candidates=found):
            series = (found.keys.offsets, found.keys.data, _flat(found.values))
            return found.values.shape[1], (*keys, group_of, *series)
        case ValuesState(group_of=group_of, values=values):
            return values.shape[1], (*keys, group_of, _flat(values))
        case CountedState(group_of=group_of, value=value, counts=counts):
            return counts.shape[1], (*keys, group_of, value, _flat(counts))


def _flat(matrix: F64Matrix) -> Column:
    return np.ascontiguousarray(matrix).reshape(-1)


class _Reader:
    """Takes columns one after the other, and checks the type of each."""

    def __init__(self, columns: Sequence[Column], steps: int, keys: Keys) -> None:
        self._columns, self._steps, self._keys = list(columns), steps, keys

    def keys(self) -> KeyBytes:
        return self._keys(self.take("<i8"), self.take("|u1"))

    def matrix(self, rows: int) -> F64Matrix:
        column = self.take("<f8")
        if rows * self._steps != len(column):
            raise FrameDamaged(f"{len(column)} cells of a partial result are not {rows} rows of {self._steps} steps")
        matrix: F64Matrix = column.reshape(rows, self._steps)
        return matrix

    def groups(self, count: int) -> Rows:
        column: Rows = self.take("<i8")
        if len(column) and not 0 <= column.min() <= column.max() < count:
            raise FrameDamaged(f"a partial result has a row whose group is not one of its {count}")
        return column

    @property
    def left(self) -> int:
        return len(self._columns)

    def take(self, kind: str) -> Any:
        if not self._columns or self._columns[0].dtype.str != kind:
            raise FrameDamaged("the columns of a partial result are not those of its kind")
        return self._columns.pop(0)


def _vector(reader: _Reader) -> Vector:
    keys = reader.keys()
    return Vector(keys, reader.matrix(len(keys)))


def _folded(reader: _Reader) -> FoldedState:
    keys = reader.keys()
    return FoldedState(keys, tuple(reader.matrix(len(keys)) for _ in range(reader.left)))


def _ranked(reader: _Reader) -> RankedState:
    keys = reader.keys()
    group_of, found = reader.groups(len(keys)), _vector(reader)
    if len(group_of) != len(found.keys):
        raise FrameDamaged(f"{len(found.keys)} candidates have groups of {len(group_of)}")
    return RankedState(keys, group_of, found)


def _values(reader: _Reader) -> ValuesState:
    keys = reader.keys()
    group_of = reader.groups(len(keys))
    return ValuesState(keys, group_of, reader.matrix(len(group_of)))


def _counted(reader: _Reader) -> CountedState:
    keys = reader.keys()
    group_of = reader.groups(len(keys))
    value = reader.take("<f8")
    if len(value) != len(group_of):
        raise FrameDamaged(f"{len(value)} values have groups of {len(group_of)}")
    return CountedState(keys, group_of, value, reader.matrix(len(group_of)))


_READERS: dict[str, Callable[[_Reader], Vector | State]] = {
    "rows": _vector,
    "folded": _folded,
    "ranked": _ranked,
    "values": _values,
    "counted": _counted,
}
