"""Catching up shards whose node is down: as their owner, without their tails, several at a time.

Each shard has a thread of its own. The worker is started by the calling thread, with whose life its own is tied.
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
    """A shard could not be caught up, for a reason that nobody foresaw."""


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """What became of a shard. `error` says why it is not caught up; empty if it is."""

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
    """One shard to be caught up: whether it is taken from a live owner, and what was accepted for it."""

    shard: int
    take: bool
    accepted: Accepted


class _WorkerRequests:
    """A `ReplayService` for many threads: it only remembers that a worker is wanted."""

    def __init__(self) -> None:
        self.wanted = threading.Event()

    def ensure_worker(self) -> None:
        self.wanted.set()

    def close(self) -> None:
        """The worker is not ours."""


class CatchingUp:
    """Shards that are being caught up in one process."""

    def __init__(
        self, settings: Settings, environ: Mapping[str, str], clock: Clock, worker: ReplayService, *, at_once: int
    ) -> None:
        self._settings, self._environ, self._clock, self._worker = settings, environ, clock, worker
        self._at_once = at_once
        self._requests = _WorkerRequests()
        self._running: dict[int, RunningShard] = {}
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End soon. What is done stays done."""
        self._stopping.set()
        for running in list(self._running.values()):
            running.stop()

    def status(self, shard: int) -> Status | None:
        """Where a shard stands; None before its turn."""
        running = self._running.get(shard)
        return running.status if running is not None else None

    def run(self, tasks: Sequence[Task], on_poll: Callable[[], None]) -> list[CaughtUp]:
        """Catch up all of them. One that fails holds back no other. `on_poll` is called several times a second."""
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
        except Exception as failure:  # noqa: BLE001 - it is told with the shard's outcome
            # The others' outcomes must be told all the same.
            _LOG.exception("catching up has failed", shard=task.shard)
            error = CatchingUpFailed(f"{type(failure).__name__}: {failure}", remedy="This is a fault: see the log")
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
            error=error.message if error is not None else "it was stopped before its end" if stopped else "",
            remedy=(error.remedy or "") if error is not None else "",
            exit_code=error.exit_code if error is not None else ExitCode.INTERRUPTED if stopped else ExitCode.OK,
        )

    def _run_shard(self, task: Task) -> None:
        with assembled(self._settings, task.shard, self._environ, self._clock, replays=self._requests) as parts:
            running = RunningShard(parts, accepted=task.accepted, take=task.take, reads_tail=False)
            self._running[task.shard] = running
            if self._stopping.is_set():
                running.stop()  # It was too late to be told with the others.
            running.run()
