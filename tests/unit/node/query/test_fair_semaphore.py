"""`FairSemaphore`: how many threads hold a permit, in which order they get one, and what happens when one gives up."""

import threading
from contextlib import ExitStack

import pytest

from strandline.clock import SystemClock, wait_until
from strandline.node.query.fair_semaphore import FairSemaphore

pytestmark = pytest.mark.unit

WAIT_S = 20.0


class GivenUpError(Exception):
    """The thread's work was cancelled."""


def not_cancelled() -> None:
    """The thread's work is not cancelled."""


def must_not_wait() -> None:
    """For a thread that must not have to wait."""
    raise AssertionError("the thread waits")


def waits(semaphore: FairSemaphore, threads: int) -> bool:
    return wait_until(lambda: semaphore.waiting == threads, timeout=WAIT_S, clock=SystemClock(), poll=0.001)


def test_threads_up_to_the_permits_do_not_wait() -> None:
    semaphore = FairSemaphore(2)
    with semaphore.acquired(must_not_wait), semaphore.acquired(must_not_wait):
        assert semaphore.waiting == 0
    with ExitStack() as again:
        for _ in range(2):
            again.enter_context(semaphore.acquired(must_not_wait))


def test_waiting_threads_get_permits_in_the_order_of_their_requests() -> None:
    semaphore, order = FairSemaphore(1), list[int]()

    def work(number: int) -> None:
        with semaphore.acquired(not_cancelled):
            order.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    with semaphore.acquired(must_not_wait):
        for number, thread in enumerate(threads):
            thread.start()
            assert waits(semaphore, number + 1)
        assert order == []
    for thread in threads:
        thread.join(WAIT_S)
    assert order == [0, 1, 2, 3, 4]


def test_a_thread_that_gives_up_while_it_waits_takes_no_permit() -> None:
    semaphore, given_up = FairSemaphore(1), list[type[BaseException]]()

    def give_up() -> None:
        raise GivenUpError

    def work() -> None:
        try:
            with semaphore.acquired(give_up):
                given_up.append(AssertionError)
        except GivenUpError as error:
            given_up.append(type(error))

    with semaphore.acquired(must_not_wait):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(WAIT_S)
        assert given_up == [GivenUpError]
        assert semaphore.waiting == 0
    with semaphore.acquired(must_not_wait):
        assert semaphore.waiting == 0


def test_a_permit_granted_to_a_thread_that_has_just_given_up_is_passed_on() -> None:
    semaphore = FairSemaphore(1)
    first = semaphore.acquired(must_not_wait)
    first.__enter__()

    def give_up_when_the_permit_comes() -> None:
        first.__exit__(None, None, None)
        raise GivenUpError

    with pytest.raises(GivenUpError), semaphore.acquired(give_up_when_the_permit_comes):
        raise AssertionError
    with semaphore.acquired(must_not_wait):
        assert semaphore.waiting == 0


def test_an_error_releases_the_permit() -> None:
    semaphore = FairSemaphore(1)
    with pytest.raises(GivenUpError), semaphore.acquired(must_not_wait):
        raise GivenUpError
    with semaphore.acquired(must_not_wait):
        assert semaphore.waiting == 0
