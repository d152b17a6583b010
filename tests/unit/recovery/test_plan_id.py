"""Plan ids: unique, and with the present of their plan."""

import uuid

import pytest

from strandline.recovery.plan_id import new_plan_id, planned_at

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("present", [None, 0, 1_700_000_000_000])
def test_no_two_plans_have_one_name(present: int | None) -> None:
    assert len({new_plan_id(present) for _ in range(100)}) == 100


@pytest.mark.parametrize("present", [0, 1, 1_700_000_000_000, 2**48 - 1])
def test_a_plan_s_id_contains_the_time_when_it_was_made(present: int) -> None:
    plan = new_plan_id(present)
    assert planned_at(plan) == present
    found = uuid.UUID(hex=plan)
    assert (found.version, found.variant) == (7, uuid.RFC_4122)


@pytest.mark.parametrize(("present", "held"), [(-5, 0), (2**60, 2**48 - 1)])
def test_a_present_that_does_not_fit_is_held_at_the_bound(present: int, held: int) -> None:
    assert planned_at(new_plan_id(present)) == held


# Named: random names would differ between the processes of a test run.
@pytest.mark.parametrize(
    "plan", ["plan", "", uuid.uuid4().hex, new_plan_id(None)], ids=["a word", "empty", "random", "without a present"]
)
def test_an_id_of_an_older_version_has_no_time(plan: str) -> None:
    assert planned_at(plan) is None
