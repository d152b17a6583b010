"""The times of a query: its evaluation timestamps, and the values to which `@` may refer."""

from dataclasses import dataclass

from strandline.promql.expressions import AtBound
from strandline.promql.values import Grid

DEFAULT_LOOKBACK_MS = 300_000
DEFAULT_SUBQUERY_STEP_MS = 60_000


@dataclass(frozen=True, slots=True)
class QueryTimes:
    """Start and end in milliseconds since the epoch. In an instant query they are equal, and the step is 0."""

    start: int
    end: int
    step: int
    lookback: int = DEFAULT_LOOKBACK_MS
    subquery_step: int = DEFAULT_SUBQUERY_STEP_MS
    """The step of subqueries without an explicit step."""

    @classmethod
    def instant(cls, time: int, *, lookback: int = DEFAULT_LOOKBACK_MS) -> "QueryTimes":
        """The times of an instant query."""
        return cls(time, time, 0, lookback)

    @property
    def is_instant(self) -> bool:
        """Whether it is an instant query. A range query may have one step, too."""
        return self.step == 0

    @property
    def grid(self) -> Grid:
        """The evaluation timestamps."""
        if self.is_instant:
            return Grid(self.start, 1, 1)
        return Grid(self.start, self.step, (self.end - self.start) // self.step + 1)

    def resolve_at(self, at: int | AtBound) -> int:
        """The timestamp of `@` in this query, also within subqueries."""
        match at:
            case AtBound.START:
                return self.start
            case AtBound.END:
                return self.end
            case _:
                return at
