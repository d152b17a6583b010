"""Compare-and-sets whose answer may be lost.

One that was not to_result may have been applied, or be applied yet. So from then on nothing that a later try says counts
by itself: what came of it is read from the rows, by a serial read, and compared with values that only this writer
writes.
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
    """It is known what came of it."""

    outcome: T


def settle(
    retries: Retries,
    *,
    send: Callable[[], Answer],
    to_result: Callable[[Answer], T],
    read_outcome: Callable[[], Settled[T] | None],
) -> T:
    """Do a compare-and-set until it is known what came of it.

    `send` sends it once. `to_result` says what an answer means: the first that came, or that it was applied. `read_outcome` is
    asked once an answer was missed: it reads serially and says what came of it, or None if it was not applied and may
    be sent again. Both may raise what the caller is to get. Raises `StoreUnavailable` past the deadline.
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
        # It is refused, and that may be by what an earlier try of its own wrote. The next read_outcome will tell.
        raise Unanswered("a compare-and-set met something else than a moment before", remedy="Try again")

    return retries.run(attempt)
