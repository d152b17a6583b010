"""Catches up shards whose node is down: as their owner, without their tails, several at a time.

Each shard runs in its own thread. The calling thread starts the worker, which is tethered to that thread.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import structlog

from strandline.clock import Clock
from strandline.errors import ExitCode, Fatal, StrandlineError
from strandline.node.settings.sections import Settings
from strandline.node.shard.assembling import assembled
from strandline.node.shard.replaying import ReplayService
from strandline.node.shard.running import RunningShard
from strandline.node.shard.status import Status
from strandline.recovery.offset_policy import Accepted

_LOG = structlog.get_logger(__name__)
_POLL_S = 0.2


class CatchingUpFailed(Fatal):
    """A shard could not be caught up because of an unexpected error."""


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The outcome of a shard. `error` is empty if it is caught up."""

    shard: int
    seconds: float
    buckets: int
    records: int
    samples: int
    new_keys: int
    dead_letters: int
    error: str = ""
    remedy: str = ""
    exit_code: ExitCode = ExitCode.OK


@dataclass(frozen=True, slots=True)
class Task:
    """A shard to catch up: whether to take it over from a live owner, and the accepted losses."""

    shard: int
    take: bool
    accepted: Accepted


class _WorkerRequests:
    """A `ReplayService` for many threads. It only records that a worker is needed."""

    def __init__(self) -> None:
        self.wanted = threading.Event()

    def ensure_worker(self) -> None:
        self.wanted.set()

    def close(self) -> None:
        """Nothing to do: the calling thread owns the worker."""


class CatchingUp:
    """Catches up shards in one process."""

    def __init__(
        self, settings: Settings, environ: Mapping[str, str], clock: Clock, worker: ReplayService, *, at_once: int
    ) -> None:
        self._settings, self._environ, self._clock, self._worker = settings, environ, clock, worker
        self._at_once = at_once
        self._requests = _WorkerRequests()
        self._running: dict[int, RunningShard] = {}
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Stop soon. What is stored stays stored."""
        self._stopping.set()
        for running in list(self._running.values()):
            running.stop()

    def status(self, shard: int) -> Status | None:
        """The status of a shard; None before it was started."""
        running = self._running.get(shard)
        return running.status if running is not None else None

    def run(self, tasks: Sequence[Task], on_poll: Callable[[], None]) -> list[CaughtUp]:
        """Catch up all shards. A failure of one does not stop others. `on_poll` is called several times per second."""
        with ThreadPoolExecutor(self._at_once, thread_name_prefix="shard") as pool:
            outcomes: list[Future[CaughtUp]] = [pool.submit(self._catch_up, task) for task in tasks]
            try:
                while not all(outcome.done() for outcome in outcomes):
                    on_poll()
                    if self._requests.wanted.is_set():
                        self._requests.wanted.clear()
                        self._worker.ensure_worker()
                    self._clock.sleep(_POLL_S)
            except BaseException:
                # Leaving the block waits for all of them.
                self.stop()
                raise
            return [outcome.result() for outcome in outcomes]

    def _catch_up(self, task: Task) -> CaughtUp:
        began = self._clock.monotonic()
        error: StrandlineError | None = None
        try:
            if not self._stopping.is_set():
                self._run_shard(task)
        except StrandlineError as failure:
            error = failure
        except Exception as failure:  # noqa: BLE001 - reported in the outcome, like those of the other shards
            _LOG.exception("catching up failed", shard=task.shard)
            error = CatchingUpFailed(f"{type(failure).__name__}: {failure}", remedy="This is a bug: see the log")
        status = self.status(task.shard) or Status()
        counters = status.counters
        stopped = error is None and self._stopping.is_set()
        return CaughtUp(
            shard=task.shard,
            seconds=self._clock.monotonic() - began,
            buckets=counters.cuts,
            records=counters.records,
            samples=counters.samples,
            new_keys=counters.new_keys,
            dead_letters=counters.dead_letters,
            error=error.message if error is not None else "stopped before it was caught up" if stopped else "",
            remedy=(error.remedy or "") if error is not None else "",
            exit_code=error.exit_code if error is not None else ExitCode.INTERRUPTED if stopped else ExitCode.OK,
        )

    def _run_shard(self, task: Task) -> None:
        with assembled(self._settings, task.shard, self._environ, self._clock, replays=self._requests) as parts:
            running = RunningShard(parts, accepted=task.accepted, take=task.take, reads_tail=False)
            self._running[task.shard] = running
            if self._stopping.is_set():
                running.stop()  # `stop` was called before this shard was in `_running`.
            running.run()
