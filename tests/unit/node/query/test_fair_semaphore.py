"""`FairSemaphore`: the number of permits, the order in which threads get them, and cancelled threads."""

import threading
from contextlib import ExitStack

import pytest

from strandline.clock import SystemClock, wait_until
from strandline.node.query.fair_semaphore import FairSemaphore

pytestmark = pytest.mark.unit

WAIT_S = 20.0


class GivenUpError(Exception):
    """The thread's work is cancelled."""


def not_cancelled() -> None:
    """The thread's work is not cancelled."""


def must_not_wait() -> None:
    """Fail if the thread has to wait."""
    raise AssertionError("the thread waits")


def threads_are_waiting(semaphore: FairSemaphore, threads: int) -> bool:
    return wait_until(lambda: semaphore.waiting == threads, timeout=WAIT_S, clock=SystemClock(), poll=0.001)


def test_threads_up_to_the_permits_do_not_wait() -> None:
    semaphore = FairSemaphore(2)
    with semaphore.acquired(must_not_wait), semaphore.acquired(must_not_wait):
        assert semaphore.waiting == 0
    with ExitStack() as permits:
        for _ in range(2):
            permits.enter_context(semaphore.acquired(must_not_wait))


def test_waiting_threads_get_permits_in_the_order_of_their_requests() -> None:
    semaphore, order = FairSemaphore(1), list[int]()

    def work(number: int) -> None:
        with semaphore.acquired(not_cancelled):
            order.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    with semaphore.acquired(must_not_wait):
        for number, thread in enumerate(threads):
            thread.start()
            assert threads_are_waiting(semaphore, number + 1)
        assert order == []
    for thread in threads:
        thread.join(WAIT_S)
    assert order == [0, 1, 2, 3, 4]


def test_a_thread_that_is_cancelled_while_it_waits_takes_no_permit() -> None:
    semaphore, outcomes = FairSemaphore(1), list[type[BaseException]]()

    def give_up() -> None:
        raise GivenUpError

    def work() -> None:
        try:
            with semaphore.acquired(give_up):
                outcomes.append(AssertionError)
        except GivenUpError as error:
            outcomes.append(type(error))

    with semaphore.acquired(must_not_wait):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(WAIT_S)
        assert outcomes == [GivenUpError]
        assert semaphore.waiting == 0
    with semaphore.acquired(must_not_wait):
        assert semaphore.waiting == 0


def test_a_permit_granted_to_a_cancelled_thread_is_passed_on() -> None:
    semaphore = FairSemaphore(1)
    first = semaphore.acquired(must_not_wait)
    first.__enter__()

    def give_up_when_granted() -> None:
        first.__exit__(None, None, None)
        raise GivenUpError

    with pytest.raises(GivenUpError), semaphore.acquired(give_up_when_granted):
        raise AssertionError
    with semaphore.acquired(must_not_wait):
        assert semaphore.waiting == 0


def test_an_error_releases_the_permit() -> None:
    semaphore = FairSemaphore(1)
    with pytest.raises(GivenUpError), semaphore.acquired(must_not_wait):
        raise GivenUpError
    with semaphore.acquired(must_not_wait):
        assert semaphore.waiting == 0
