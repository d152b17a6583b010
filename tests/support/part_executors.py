"""Executors without Spark: threads that run parts as executors do, over the real channel to the driver."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from strandline.clock import Clock, ManualClock, SystemClock
from strandline.jobs.board import BulkBoard
from strandline.jobs.importing.import_kind import IMPORT, ImportKind
from strandline.jobs.job_lifecycle import WorkerRules
from strandline.jobs.landing.memory_part_log import MemoryTransactions
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.rate import NO_THROTTLE, Throttle
from strandline.jobs.running import JobKind, KindOpener
from strandline.jobs.worker import BulkWorker
from strandline.spark.part_listener import PartListener
from strandline.spark.part_runner import SparkPartRunner
from strandline.spark.part_task import PartTask, run_task
from strandline.store.protocol import Store
from support.bulk_worlds import DATASET, Crash, Fault, Hooked
from support.job_worlds import JobWorld
from support.memory_store import MemoryStore

GRANT_S = 0.3


class ThreadLauncher:
    """The `TaskLauncher` of one core: tasks run one after the other, so the in-memory implementations can be used."""

    def __init__(self, runs: int = 1) -> None:
        """Each task is run `runs` times, as Spark does with a task that it considers lost."""
        self._runs, self._core = runs, threading.Lock()
        self.cancelled: list[str] = []
        self.threads: list[threading.Thread] = []

    def cores(self) -> int:
        return 1

    def launch(self, name: str, task: PartTask, over: Callable[[str], None]) -> None:
        def run() -> None:
            failure = ""
            with self._core:
                for _ in range(self._runs):
                    try:
                        run_task(task)
                    except Crash:
                        failure = "the Python process was killed"
            over(failure)

        self.threads.append(threading.Thread(target=run, name=name, daemon=True))
        self.threads[-1].start()

    def cancel(self, name: str) -> None:
        self.cancelled.append(name)

    def require_alive(self) -> None:
        pass


@dataclass
class MemoryOpener:
    """Opens imports with an in-memory Kafka. A fault ends the process of a task at one of its calls; later processes
    run.
    """

    world: JobWorld
    fault: Fault | None = None
    stalls: Mapping[str, Callable[[], None]] = field(default_factory=dict)
    """By the name of a call to the brokers: what happens before it, while the process is suspended."""

    def __call__(self, clock: Clock) -> ImportKind:
        fault = None if self.fault is None or self.fault.is_over else self.fault

        def open_log() -> PartLog:
            calls = Hooked(MemoryTransactions(self.world.cluster), fault, self.world.calls, self.stalls)
            return PartLog(cast("MemoryTransactions", calls), clock)

        return ImportKind(open_log, clock)


@contextmanager
def worker_with_executors(
    world: JobWorld,
    opener: KindOpener,
    *,
    runs: int = 1,
    poll_s: float = 0,
    grant_s: float = GRANT_S,
    clock: ManualClock | None = None,
    throttle: Throttle = NO_THROTTLE,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[BulkWorker]:
    """A worker in this world whose parts are run by executors. `clock` is its machine's clock."""
    own, launcher = clock or world.clock, ThreadLauncher(runs)
    board = BulkBoard(cast("Store", MemoryStore(world.server)), DATASET, own, world.policy)
    kinds: dict[str, JobKind] = {IMPORT: MemoryOpener(world)(own)}
    with PartListener("127.0.0.1") as listener:
        runner = SparkPartRunner(launcher, listener, {IMPORT: opener}, SystemClock(), grant_s=grant_s)
        rules = WorkerRules(poll_s=poll_s, concurrent_fences=1)
        yield BulkWorker(board, kinds, own, "driver", rules, runner=runner, throttle=throttle, stop=stop)
        for thread in launcher.threads:
            thread.join(60)
            assert not thread.is_alive()


def job_world(folder: Path) -> JobWorld:
    """A world in which a part may lose any number of tasks."""
    return JobWorld(folder, failures_allowed=1_000)
