"""The CPU time of each stage of a shard's work, by thread time: for metrics and benchmarks."""

import threading
import time
from contextlib import AbstractContextManager
from enum import StrEnum
from types import TracebackType


class Stage(StrEnum):
    """The stages, in the order in which a sample passes them. Adding new keys to the index is part of LOOK_UP."""

    CONSUME = "consume"
    SNAPPY = "snappy"
    DECODE = "decode"
    LOOK_UP = "lookup"
    APPEND = "append"
    SEAL = "seal"
    MERGE = "merge"
    CUT = "cut"
    ENCODE = "encode"
    STORE = "store"


class Stages:
    """CPU seconds by stage. One thread times each stage. The time of a nested stage counts for that stage only."""

    def __init__(self) -> None:
        self.seconds: dict[Stage, float] = dict.fromkeys(Stage, 0.0)
        self._inner = _Inner()

    def timing(self, stage: Stage) -> AbstractContextManager[None]:
        """A context whose CPU time, in the calling thread, counts for a stage."""
        return _Timing(self.seconds, self._inner, stage)


class _Inner(threading.local):
    """The time of the nested stages that have ended within the current stage of the thread."""

    seconds = 0.0


class _Timing(AbstractContextManager[None]):
    """The context of one stage. Not a generator, which would be slower: each step enters several stages."""

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
