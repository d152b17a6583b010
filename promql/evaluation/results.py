"""The result of a query."""

from dataclasses import dataclass

from strandline.promql.annotations import NONE, Annotations
from strandline.promql.evaluation.rows import Points
from strandline.promql.value_types import ValueType


@dataclass(frozen=True, slots=True)
class Result:
    """The value of a query, depending on its type: `points` for a vector (one per series, at `time`) and a matrix,
    `number` for a scalar, `text` for a string. The series of a matrix are in the order of their labels.
    """

    kind: ValueType
    time: int
    points: Points | None = None
    number: float = 0.0
    text: str = ""
    annotations: Annotations = NONE
