"""Turns at work that takes processors and memory: a few threads at a time, each in the order in which it asked."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# A thread that waits sees this often whether its work is still wanted.
_LOOK_S = 0.05


class Turns:
    """At most so many threads are inside `taken` at a time. Any thread may ask."""

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._free = most
        self._waiting = deque[threading.Event]()

    @property
    def waiting(self) -> int:
        """How many threads wait for their turn."""
        return len(self._waiting)

    @contextmanager
    def taken(self, step: Callable[[], None]) -> Iterator[None]:
        """Wait for a turn, and have it inside. `step` is called while waiting; what it raises ends that."""
        self._take(step)
        try:
            yield
        finally:
            self._give()

    def _take(self, step: Callable[[], None]) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            mine = threading.Event()
            self._waiting.append(mine)
        try:
            while not mine.wait(_LOOK_S):
                step()
        except BaseException:
            with self._lock:
                is_given = mine not in self._waiting
                if not is_given:
                    self._waiting.remove(mine)
            if is_given:
                self._give()
            raise

    def _give(self) -> None:
        """To the thread that has waited longest. One that comes just now does not overtake it."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1
