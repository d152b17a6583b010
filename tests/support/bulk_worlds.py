"""The base of worlds of bulk jobs: in-memory store and Kafka, and workers that may crash at any call to them."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

from strandline.clock import ManualClock
from strandline.jobs.board import BulkBoard
from strandline.jobs.landing.memory_part_log import MemoryCluster, MemoryTransactions
from strandline.jobs.worker import BulkWorker
from strandline.recovery.leasing import LeasePolicy
from strandline.store.protocol import Store, StoreUnavailable
from support.memory_store import MemoryServer, MemoryStore

DATASET = "metrics"
LIFE = 10 * 86_400_000
NOW = 1_800_000_000_000

Stalls = Mapping[str, Callable[[], None]]
"""Functions by the name of a call: each runs while the process is suspended before that call."""


class Crash(BaseException):
    """The process has crashed. No code may catch this."""


class FaultKind(Enum):
    """The kinds of faults."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOST_ANSWER = "lost answer"


@dataclass
class Fault:
    """A fault of a process at one of its calls."""

    kind: FaultKind
    calls_left: int
    is_over: bool = False

    def next_call(self) -> FaultKind | None:
        """The fault of this call. A crashed process makes no further calls."""
        self.calls_left -= 1
        if self.is_over:
            return None if self.kind is FaultKind.LOST_ANSWER else FaultKind.CRASH_BEFORE
        if self.calls_left > 0:
            return None
        self.is_over = True
        return self.kind


class Hooked:
    """The calls of one process to the store or to the brokers, each of which may crash it."""

    def __init__(
        self,
        target: object,
        fault: Fault | None,
        calls: Counter[str],
        stalls: Stalls | None = None,
    ) -> None:
        """Before each call that `stalls` names, the process is suspended while the given function runs."""
        self._target, self._fault, self._calls, self._stalls = target, fault, calls, stalls or {}

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._target, name)

        def hooked(*arguments: Any, **options: Any) -> Any:
            self._calls[name] += 1
            fault = self._fault.next_call() if self._fault is not None else None
            if fault is FaultKind.CRASH_BEFORE:
                raise Crash
            if name in self._stalls:
                self._stalls[name]()
            result = call(*arguments, **options)
            if fault is FaultKind.CRASH_AFTER:
                raise Crash
            if fault is FaultKind.LOST_ANSWER:
                raise StoreUnavailable(f"the answer to {name} was lost")
            return result

        return hooked


class BulkWorld(ABC):
    """A store, a topic, and any number of workers one after the other."""

    def __init__(self, failures_allowed: int) -> None:
        self.policy = LeasePolicy(failures_allowed=failures_allowed)
        self.clock = ManualClock(NOW)
        self.server = MemoryServer(self.clock)
        self.cluster = MemoryCluster(self.clock, partitions=3)
        self.board = BulkBoard(cast("Store", MemoryStore(self.server)), DATASET, self.clock)
        self.dead: set[str] = set()
        self.calls: Counter[str] = Counter()
        self._workers = 0

    @abstractmethod
    def worker(self, fault: Fault | None = None) -> BulkWorker:
        """A new worker."""

    def work(self, fault: Fault | None = None, steps: int = 1_000) -> bool:
        """Run a new worker until there is nothing left to do. False if it crashed."""
        worker = self.worker(fault)
        try:
            for _ in range(steps):
                if not worker.step():
                    # Wait after a retryable failure.
                    self.clock.sleep(120)
                    if not worker.step():
                        break
        except Crash:
            return False
        except StoreUnavailable:
            # Like `run_until_done`.
            return self.work()
        finally:
            self.dead.add(f"worker-{self._workers - 1}")
        return True

    def new_name(self) -> str:
        """The name of the next worker."""
        self._workers += 1
        return f"worker-{self._workers - 1}"

    def store(self, fault: Fault | None, stalls: Stalls | None = None) -> Store:
        """The store as one process accesses it."""
        return cast("Store", Hooked(MemoryStore(self.server), fault, self.calls, stalls))

    def transactions(self, fault: Fault | None, stalls: Stalls | None = None) -> MemoryTransactions:
        """The brokers as one process accesses them."""
        return cast("MemoryTransactions", Hooked(MemoryTransactions(self.cluster), fault, self.calls, stalls))

    def board_of(self, store: Store, clock: ManualClock) -> BulkBoard:
        """The job board of one worker."""
        return BulkBoard(store, DATASET, clock, self.policy, lambda other: other in self.dead)
