"""Outcomes of parts: they can be added, fit into a row, and survive encoding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.jobs.bad_records import MAX_EXAMPLES, MAX_EXCERPT, BadRecord, BadRecords
from strandline.jobs.counts import Counts
from strandline.jobs.outcome import MAX_STEPS, PartOutcome, SamplesByTime
from strandline.recovery.periods import HOUR

pytestmark = pytest.mark.unit

numbers = st.integers(0, 2**53)
hours = st.dictionaries(st.integers(-10_000, 10_000).map(lambda hour: hour * HOUR), numbers, max_size=20)
bad_records = st.builds(BadRecord, numbers, numbers, st.text(max_size=10), st.text(max_size=10))
outcomes = st.builds(
    PartOutcome,
    st.builds(Counts, numbers, numbers, numbers, numbers, numbers, numbers),
    numbers,
    numbers,
    numbers,
    hours.map(lambda counts: SamplesByTime.joined([SamplesByTime(HOUR, counts)])),
    st.builds(BadRecords, st.dictionaries(st.text(max_size=5), numbers, max_size=3), st.tuples(bad_records)),
    nulls=numbers,
)


@given(outcomes)
def test_an_outcome_comes_back_as_it_was(outcome: PartOutcome) -> None:
    assert PartOutcome.from_json(outcome.to_json()) == outcome


def test_a_row_from_before_nulls_were_counted_has_none() -> None:
    row = PartOutcome(Counts(records=1)).to_json().replace(',"nulls":0', "")
    assert "nulls" not in row
    assert PartOutcome.from_json(row) == PartOutcome(Counts(records=1))


def test_a_row_without_an_outcome_has_an_empty_one() -> None:
    assert PartOutcome.from_json("") == PartOutcome()


@given(outcomes, outcomes)
def test_outcomes_can_be_added(one: PartOutcome, other: PartOutcome) -> None:
    both = one + other
    assert both.counts.records == one.counts.records + other.counts.records
    assert sum(both.times.counts.values()) == sum(one.times.counts.values()) + sum(other.times.counts.values())
    assert both.bad.total == one.bad.total + other.bad.total


def test_years_of_hours_become_days_and_keep_every_sample() -> None:
    by_hour = {hour * HOUR: 2 for hour in range(24 * 365)}
    joined = SamplesByTime.joined([SamplesByTime(HOUR, by_hour)])
    assert (joined.step_ms, len(joined.counts)) == (24 * HOUR, 365)
    assert set(joined.counts.values()) == {48}
    # Counts by day are not divided into hours again.
    again = SamplesByTime.joined([joined, SamplesByTime(HOUR, {5 * HOUR: 1})])
    assert (again.step_ms, again.counts[0]) == (24 * HOUR, 49)


def test_a_thousand_years_fit_into_a_row() -> None:
    by_day = {day * 24 * HOUR: 10**9 for day in range(365_000)}
    examples = tuple(BadRecord(10**12, 10**9, "r" * 100, "\x01" * MAX_EXCERPT) for _ in range(MAX_EXAMPLES))
    outcome = PartOutcome(
        times=SamplesByTime.joined([SamplesByTime(24 * HOUR, by_day)]), bad=BadRecords({"r": 1}, examples)
    )
    assert len(outcome.times.counts) <= MAX_STEPS
    assert len(outcome.to_json()) < 64 << 10
    assert sum(outcome.times.counts.values()) == 365_000 * 10**9
