"""The moments of a query, and what of them durations and `@` may name."""

from dataclasses import dataclass

from strandline.promql.expressions import AtBound
from strandline.promql.values import Grid

DEFAULT_LOOKBACK_MS = 300_000
DEFAULT_SUBQUERY_STEP_MS = 60_000


@dataclass(frozen=True, slots=True)
class QueryTimes:
    """Milliseconds since the epoch. An instant query has equal bounds and a step of 0."""

    start: int
    end: int
    step: int
    lookback: int = DEFAULT_LOOKBACK_MS
    subquery_step: int = DEFAULT_SUBQUERY_STEP_MS
    """The step of subqueries that name none."""

    @classmethod
    def instant(cls, time: int, *, lookback: int = DEFAULT_LOOKBACK_MS) -> "QueryTimes":
        """A query at one moment."""
        return cls(time, time, 0, lookback)

    @property
    def is_instant(self) -> bool:
        """Whether it is an instant query, and not a range query with one step."""
        return self.step == 0

    @property
    def grid(self) -> Grid:
        """The steps at which values are wanted."""
        if self.is_instant:
            return Grid(self.start, 1, 1)
        return Grid(self.start, self.step, (self.end - self.start) // self.step + 1)

    def resolve_at(self, at: int | AtBound) -> int:
        """What `@` means in this query, however deep it stands."""
        match at:
            case AtBound.START:
                return self.start
            case AtBound.END:
                return self.end
            case _:
                return at
