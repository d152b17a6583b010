"""The circuit breaker: stops a job of which too many records fail. Pure."""

from dataclasses import dataclass
from fractions import Fraction

from strandline.jobs.counts import Counts


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """A job breaks when more than `error_rate` of at least `error_minimum` records have failed."""

    error_rate: float = 0.05
    error_minimum: int = 1_000

    def __post_init__(self) -> None:
        if not 0 <= self.error_rate <= 1:
            raise ValueError(f"error_rate = {self.error_rate} must be from 0 to 1")
        if self.error_minimum < 1:
            raise ValueError(f"error_minimum = {self.error_minimum} must be positive")


def errors_of(counts: Counts) -> int:
    """Bad records, and those that Kafka rejected."""
    return counts.bad + counts.refused


def breaks(counts: Counts, rules: BreakerRules) -> bool:
    """Whether a job with these counts since its start or its last resume must stop. Exactly the rate is allowed."""
    attempted = counts.records + counts.refused
    # Decimal: the float 0.05 is slightly more than a twentieth.
    allowed = Fraction(str(rules.error_rate)) * attempted
    return attempted >= rules.error_minimum and errors_of(counts) > allowed


def reason_of(counts: Counts, rules: BreakerRules) -> str:
    """The reason of a broken job, for people."""
    attempted = counts.records + counts.refused
    return (
        f"{errors_of(counts)} of {attempted} records failed ({errors_of(counts) / attempted:.1%}), more than "
        f"jobs.error_rate = {rules.error_rate:g} allows"
    )
