"""Lowering the priority of single threads."""

import os
import threading

import pytest

from strandline.node.thread_priority import lower_priority

pytestmark = pytest.mark.unit


def priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_only_the_yielding_thread_and_those_that_it_starts_have_a_lower_priority() -> None:
    before, priorities = priority(), dict[str, int]()

    def child() -> None:
        priorities["child"] = priority()

    def work() -> None:
        lower_priority()
        priorities["once"] = priority()
        lower_priority()
        priorities["twice"] = priority()
        started = threading.Thread(target=child)
        started.start()
        started.join()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert priorities["once"] == min(19, before + 10)
    assert priorities["twice"] == priorities["child"] == priorities["once"]
    assert priority() == before
