"""The circuit breaker: a job whose records mostly fail stops, before all of them have failed. Pure."""

from dataclasses import dataclass
from fractions import Fraction

from strandline.jobs.counts import Counts


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """A job breaks when more than `error_rate` of at least `error_minimum` records have failed."""

    error_rate: float = 0.05
    error_minimum: int = 1_000

    def __post_init__(self) -> None:
        if not 0 <= self.error_rate <= 1 or self.error_minimum < 1:
            raise ValueError(f"an error rate of {self.error_rate} after {self.error_minimum} records")


def errors_of(counts: Counts) -> int:
    """Bad records, and those that Kafka did not take."""
    return counts.bad + counts.refused


def breaks(counts: Counts, rules: BreakerRules) -> bool:
    """Whether a job with these counts since its start, or since it was resumed, has to stop. Exactly the rate is not
    too much.
    """
    attempted = counts.records + counts.refused
    # As it is written: 0.05 in binary is a little more than a twentieth.
    allowed = Fraction(str(rules.error_rate)) * attempted
    return attempted >= rules.error_minimum and errors_of(counts) > allowed


def reason_of(counts: Counts, rules: BreakerRules) -> str:
    """Why a job is broken, for people."""
    attempted = counts.records + counts.refused
    return (
        f"{errors_of(counts)} of {attempted} records failed ({errors_of(counts) / attempted:.1%}), more than "
        f"jobs.error_rate = {rules.error_rate:g} allows"
    )
