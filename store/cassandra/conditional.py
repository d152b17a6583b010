"""Compare-and-sets whose answer may be lost.

A compare-and-set without an answer may have been applied, or may still be applied. From then on, the answers to
repeated requests are not conclusive. The result is determined by a serial read of the rows, which compares them with
values that no other writer writes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from strandline.store.cassandra.failures import Unanswered
from strandline.store.cassandra.requests import Answer
from strandline.store.cassandra.retries import Retries

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Settled(Generic[T]):
    """The determined result."""

    outcome: T


def settle(
    retries: Retries,
    *,
    send: Callable[[], Answer],
    to_result: Callable[[Answer], T],
    read_outcome: Callable[[], Settled[T] | None],
) -> T:
    """Repeat a compare-and-set until its result is determined.

    `send` sends it once. `to_result` interprets an answer: the first one, or one that confirms the write.
    `read_outcome` is called after an answer was lost: it reads serially, and returns the result, or None if the write
    was not applied and may be sent again. Both may raise errors for the caller. Raises `StoreUnavailable` after the
    deadline.
    """
    missed = False

    def attempt() -> T:
        nonlocal missed
        if missed:
            settled = read_outcome()
            if settled is not None:
                return settled.outcome
        try:
            answer = send()
        except Unanswered:
            missed = True
            raise
        if answer.applied or not missed:
            return to_result(answer)
        # The rejection may be caused by an earlier attempt of this call. The next `read_outcome` determines that.
        raise Unanswered("a compare-and-set found another value than was read just before", remedy="Try again")

    return retries.run(attempt)
