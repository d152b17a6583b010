"""How much CPU time each stage of a shard's work takes, by thread time: for benchmarks, and to see where it goes."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum


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
        self._local = threading.local()

    @contextmanager
    def timing(self, stage: Stage) -> Iterator[None]:
        """Count the calling thread's CPU time inside for a stage."""
        outer = getattr(self._local, "inner_seconds", 0.0)
        self._local.inner_seconds = 0.0
        began = time.thread_time()
        try:
            yield
        finally:
            took = time.thread_time() - began
            self.seconds[stage] += took - self._local.inner_seconds
            self._local.inner_seconds = outer + took
