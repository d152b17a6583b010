"""After the answer to a compare-and-set was lost, only a read determines its result."""

from collections.abc import Callable, Iterable

import pytest

from strandline.clock import ManualClock
from strandline.store.cassandra.conditional import Settled, settle
from strandline.store.cassandra.failures import Unanswered
from strandline.store.cassandra.requests import Answer
from strandline.store.cassandra.retries import Retries
from strandline.store.protocol import Fenced, StoreUnavailable

pytestmark = pytest.mark.unit

APPLIED, REFUSED, MISSED = Answer(applied=True, found={}), Answer(applied=False, found={}), Unanswered("no answer")
UNKNOWN = None


def settled(sends: Iterable[Answer | Exception], reads: Iterable[Settled[str] | Exception | None] = ()) -> str:
    """The result of a compare-and-set, given the results of each send and each read of the outcome. All are used."""
    left = {"send": list(sends), "read_outcome": list(reads)}

    def met(what: str) -> Callable[[], object]:
        def meet() -> object:
            value = left[what].pop(0)
            if isinstance(value, Exception):
                raise value
            return value

        return meet

    outcome = settle(
        Retries(ManualClock()),
        send=met("send"),  # type: ignore[arg-type]  # as given
        to_result=lambda answer: "applied" if answer.applied else "refused",
        read_outcome=met("read_outcome"),  # type: ignore[arg-type]  # as given
    )
    assert left == {"send": [], "read_outcome": []}
    return outcome


def test_a_first_answer_counts() -> None:
    assert settled([APPLIED]) == "applied"
    assert settled([REFUSED]) == "refused"


def test_after_a_lost_answer_the_read_outcome_counts() -> None:
    assert settled([MISSED], [Settled("found")]) == "found"


def test_a_write_that_was_not_applied_is_sent_again() -> None:
    assert settled([MISSED, APPLIED], [UNKNOWN]) == "applied"
    assert settled([MISSED, MISSED, MISSED, APPLIED], [UNKNOWN] * 3) == "applied"


def test_a_refusal_after_a_missed_answer_is_no_answer() -> None:
    """The conflict may be caused by the earlier attempt."""
    assert settled([MISSED, REFUSED], [UNKNOWN, Settled("found")]) == "found"


def test_a_failed_read_of_the_outcome_is_repeated_before_anything_is_sent() -> None:
    assert settled([MISSED], [MISSED, MISSED, Settled("found")]) == "found"


def test_an_error_of_reading_the_outcome_is_final() -> None:
    with pytest.raises(Fenced):
        settled([MISSED], [Fenced("taken")])


def test_without_any_answer_the_write_is_given_up() -> None:
    with pytest.raises(StoreUnavailable, match="no answer"):
        settled([MISSED] * 1_000, [UNKNOWN] * 1_000)
