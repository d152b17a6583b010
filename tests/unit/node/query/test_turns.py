"""Turns: how many threads have one at a time, in which order, and what becomes of one that gives up."""

import threading
from contextlib import ExitStack

import pytest

from strandline.clock import SystemClock, wait_until
from strandline.node.query.turns import Turns

pytestmark = pytest.mark.unit

WAIT_S = 20.0


class GivenUpError(Exception):
    """A thread's work is not wanted any longer."""


def go_on() -> None:
    """It is still wanted."""


def at_once() -> None:
    """There is a free turn."""
    raise AssertionError("it has to wait")


def waits(turns: Turns, threads: int) -> bool:
    return wait_until(lambda: turns.waiting == threads, timeout=WAIT_S, clock=SystemClock(), poll=0.001)


def test_as_many_as_may_have_a_turn_at_once() -> None:
    turns = Turns(2)
    with turns.taken(at_once), turns.taken(at_once):
        assert turns.waiting == 0
    with ExitStack() as again:
        for _ in range(2):
            again.enter_context(turns.taken(at_once))


def test_others_have_theirs_in_the_order_in_which_they_asked() -> None:
    turns, order = Turns(1), list[int]()

    def work(number: int) -> None:
        with turns.taken(go_on):
            order.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    with turns.taken(at_once):
        for number, thread in enumerate(threads):
            thread.start()
            assert waits(turns, number + 1)
        assert order == []
    for thread in threads:
        thread.join(WAIT_S)
    assert order == [0, 1, 2, 3, 4]


def test_one_that_gives_up_while_it_waits_takes_no_turn() -> None:
    turns, given_up = Turns(1), list[type[BaseException]]()

    def give_up() -> None:
        raise GivenUpError

    def work() -> None:
        try:
            with turns.taken(give_up):
                given_up.append(AssertionError)
        except GivenUpError as error:
            given_up.append(type(error))

    with turns.taken(at_once):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(WAIT_S)
        assert given_up == [GivenUpError]
        assert turns.waiting == 0
    with turns.taken(at_once):
        assert turns.waiting == 0


def test_a_turn_that_is_given_to_one_that_has_just_given_up_goes_to_the_next() -> None:
    turns = Turns(1)
    first = turns.taken(at_once)
    first.__enter__()

    def give_up_as_the_turn_comes() -> None:
        first.__exit__(None, None, None)
        raise GivenUpError

    with pytest.raises(GivenUpError), turns.taken(give_up_as_the_turn_comes):
        raise AssertionError
    with turns.taken(at_once):
        assert turns.waiting == 0


def test_a_turn_ends_with_an_error_too() -> None:
    turns = Turns(1)
    with pytest.raises(GivenUpError), turns.taken(at_once):
        raise GivenUpError
    with turns.taken(at_once):
        assert turns.waiting == 0
