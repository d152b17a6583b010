"""What a query gives."""

from dataclasses import dataclass

from strandline.promql.annotations import NONE, Annotations
from strandline.promql.evaluation.rows import Points
from strandline.promql.value_types import ValueType


@dataclass(frozen=True, slots=True)
class Result:
    """The value of a query, by its type: `points` of a vector (one of each series, at `time`) or a matrix, `number` of
    a scalar, or `text`. The series of a matrix are in the order of their labels.
    """

    kind: ValueType
    time: int
    points: Points | None = None
    number: float = 0.0
    text: str = ""
    annotations: Annotations = NONE
