"""How much CPU time each stage of a shard's work takes, by thread time: for benchmarks, and to see where it goes."""

import threading
import time
from contextlib import AbstractContextManager
from enum import StrEnum
from types import TracebackType


class Stage(StrEnum):
    """The stages, in the order in which a sample passes them. Adding new keys to the index is part of the look-up."""

    CONSUME = "consume"
    SNAPPY = "snappy"
    DECODE = "decode"
    LOOK_UP = "look-up"
    APPEND = "append"
    SEAL = "seal"
    MERGE = "merge"
    CUT = "cut"
    ENCODE = "encode"
    STORE = "store"


class Stages:
    """Seconds of CPU by stage. Each stage is timed by one thread; a stage inside another counts for itself only."""

    def __init__(self) -> None:
        self.seconds: dict[Stage, float] = dict.fromkeys(Stage, 0.0)
        self._inner = _Inner()

    def timing(self, stage: Stage) -> AbstractContextManager[None]:
        """Count the calling thread's CPU time inside for a stage."""
        return _Timing(self.seconds, self._inner, stage)


class _Inner(threading.local):
    """What the stages took that have ended inside the one that the thread is in."""

    seconds = 0.0


class _Timing(AbstractContextManager[None]):
    """One passage through a stage. Not a generator: a shard enters several stages in each step."""

    __slots__ = ("_began", "_inner", "_outer", "_seconds", "_stage")

    def __init__(self, seconds: dict[Stage, float], inner: _Inner, stage: Stage) -> None:
        self._seconds, self._inner, self._stage = seconds, inner, stage

    def __enter__(self) -> None:
        self._outer, self._inner.seconds = self._inner.seconds, 0.0
        self._began = time.thread_time()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        took = time.thread_time() - self._began
        self._seconds[self._stage] += took - self._inner.seconds
        self._inner.seconds = self._outer + took
