"""The breaker opens above its rate, after enough records, for bad records and for failed deliveries."""

import pytest

from strandline.jobs.breaker import BreakerRules, breaks, reason_of
from strandline.jobs.counts import Counts

pytestmark = pytest.mark.unit

RULES = BreakerRules()


@pytest.mark.parametrize(("bad", "broken"), [(500, False), (501, True), (0, False), (10_000, True)])
def test_exactly_the_rate_stays_closed_and_one_more_opens(bad: int, broken: bool) -> None:
    assert breaks(Counts(records=10_000, bad=bad), RULES) is broken


@pytest.mark.parametrize("records", [20, 60, 140, 1_000_000_020])
def test_the_rate_is_compared_as_a_decimal_number(records: int) -> None:
    """0.05 is not exact in binary."""
    rules = BreakerRules(error_minimum=1)
    assert not breaks(Counts(records=records, bad=records // 20), rules)
    assert breaks(Counts(records=records, bad=records // 20 + 1), rules)


def test_a_few_records_never_open_the_breaker() -> None:
    assert not breaks(Counts(records=999, bad=999), RULES)
    assert breaks(Counts(records=1_000, bad=1_000), RULES)
    assert not breaks(Counts(), BreakerRules(error_rate=0.0, error_minimum=1))


def test_deliveries_that_failed_are_errors() -> None:
    assert breaks(Counts(records=1_000, refused=60), RULES)
    assert not breaks(Counts(records=1_000, refused=52), RULES)


def test_the_reason_has_the_figures_and_the_setting() -> None:
    assert reason_of(Counts(records=1_000, bad=100), RULES) == (
        "100 of 1000 records failed (10.0%), more than jobs.error_rate = 0.05 allows"
    )
