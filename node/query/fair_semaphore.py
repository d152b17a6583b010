"""A semaphore for work that takes processors and memory. Threads get permits in the order in which they asked."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# How often a waiting thread calls its check.
_POLL_S = 0.05


class FairSemaphore:
    """At most `permits` threads are inside `acquired` at a time. Thread-safe."""

    def __init__(self, permits: int) -> None:
        self._lock = threading.Lock()
        self._free = permits
        self._waiting = deque[threading.Event]()

    @property
    def waiting(self) -> int:
        """How many threads wait for a permit."""
        return len(self._waiting)

    @contextmanager
    def acquired(self, check: Callable[[], None]) -> Iterator[None]:
        """Wait for a permit, and hold it inside. `check` is called while waiting, and can end that by raising."""
        self._acquire(check)
        try:
            yield
        finally:
            self._release()

    def _acquire(self, check: Callable[[], None]) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            granted = threading.Event()
            self._waiting.append(granted)
        try:
            while not granted.wait(_POLL_S):
                check()
        except BaseException:
            with self._lock:
                is_granted = granted not in self._waiting
                if not is_granted:
                    self._waiting.remove(granted)
            if is_granted:
                self._release()
            raise

    def _release(self) -> None:
        """Pass the permit to the thread that has waited longest, so that a new thread can't overtake it."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1
