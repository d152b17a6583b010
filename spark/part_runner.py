"""Parts of bulk jobs on Spark: each part is a Spark job with one task.

A lost task does not affect other parts, and a part starts as soon as a core is free, instead of waiting for the slowest
part of a wave. The worker leases twice as many parts as there are cores, so that the next task is available when one
ends.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

import structlog
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException

from strandline.clock import Clock
from strandline.jobs.running import GRANT_S, KindOpener, LeasedPart, PartEnd, PartStopped
from strandline.recovery.replay.runner import SessionLost
from strandline.spark.part_listener import PartListener
from strandline.spark.part_slots import PartSlot
from strandline.spark.part_task import PartTask, run_on_executor
from strandline.spark.watching import is_answering, reason_of
from strandline.store.bulk_jobs import BulkPart

_LOG = structlog.get_logger(__name__)
PARTS_PER_CORE: Final = 2
_POLL_INTERVAL_S = 0.5
# A task that has not stopped after this time is cancelled in Spark, which ends its process.
_CANCEL_AFTER_S = 3.0
OnEnd = Callable[[str], None]


class TaskLauncher(Protocol):
    """What the runner needs from Spark."""

    def cores(self) -> int:
        """How many tasks run at once."""
        ...

    def launch(self, name: str, task: PartTask, on_end: OnEnd) -> None:
        """Run a task. Another thread calls `on_end` once Spark has finished with it, with the reason if it failed."""
        ...

    def cancel(self, name: str) -> None:
        """Cancel a task. Does nothing if it has ended or not started."""
        ...

    def require_alive(self) -> None:
        """Raises `SessionLost` if the session can no longer run tasks."""
        ...


class SparkLauncher:
    """A Spark session."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    def cores(self) -> int:
        return self._context.defaultParallelism

    def launch(self, name: str, task: PartTask, on_end: OnEnd) -> None:
        def run() -> None:
            failure = ""
            try:
                self._context.setJobGroup(name, task.part.name, interruptOnCancel=False)
                self._context.parallelize([0], 1).mapPartitions(partial(run_on_executor, task)).collect()
            except (Py4JError, OSError, PySparkException) as error:
                failure = reason_of(str(error)) or type(error).__name__
            finally:
                on_end(failure)

        InheritableThread(target=run, name=name, daemon=True).start()

    def cancel(self, name: str) -> None:
        self._context.cancelJobGroup(name)

    def require_alive(self) -> None:
        if not is_answering(self._context):
            raise SessionLost(
                "the Spark session is gone",
                remedy="Restart the worker. If this happens again, check the JVM's memory",
            )


class SparkPartRunner:
    """The `PartRunner` of a Spark session."""

    def __init__(
        self,
        launcher: TaskLauncher,
        listener: PartListener,
        openers: Mapping[str, KindOpener],
        clock: Clock,
        *,
        grant_s: float = GRANT_S,
    ) -> None:
        """`openers` has one for each kind of job whose parts may run."""
        self._launcher, self._listener, self._openers = launcher, listener, openers
        self._clock, self._grant_s = clock, grant_s
        self._slots: dict[str, PartSlot] = {}
        self._stopping: dict[str, float] = {}

    def width(self) -> int:
        return PARTS_PER_CORE * max(1, self._launcher.cores())

    def start(self, leased: LeasedPart) -> None:
        slot = PartSlot(leased, self._clock, self._grant_s)
        name = _name(leased.part)
        self._slots[name] = slot
        self._listener.add(slot)
        opener = self._openers[leased.job.kind]
        task = PartTask(
            leased.job, leased.part, leased.first_begun_ms, opener, self._listener.address, self._listener.key
        )

        def on_end(reason: str) -> None:
            slot.task_ended(reason)
            self._listener.changed.set()

        self._launcher.launch(name, task, on_end)

    def ended(self, poll: Callable[[], None]) -> Sequence[PartEnd]:
        self._listener.changed.wait(_POLL_INTERVAL_S)
        self._listener.changed.clear()
        poll()
        found = []
        for name, slot in list(self._slots.items()):
            self._stop_if_due(name, slot)
            end = slot.ended()
            if end is not None:
                self._forget(name, slot)
                found.append(end)
        if any(end.outcome is None for end in found):
            self._launcher.require_alive()
        return found

    def close(self) -> None:
        now = self._clock.monotonic()
        for name, slot in self._slots.items():
            slot.close(PartStopped("the worker stops"))
            self._stopping[name] = now
        while self._slots:
            for name, slot in list(self._slots.items()):
                if slot.ended() is not None:
                    self._forget(name, slot)
            self._listener.changed.wait(_POLL_INTERVAL_S)
            self._listener.changed.clear()

    def _stop_if_due(self, name: str, slot: PartSlot) -> None:
        """Stop a task if its part is to stop: with the reply to its next request, or by cancelling it in Spark if no
        request arrives.
        """
        try:
            slot.leased.check()
        except PartStopped as stopped:
            slot.close(stopped)
        if not slot.is_stopping:
            return
        now = self._clock.monotonic()
        since = self._stopping.setdefault(name, now)
        if now - since >= _CANCEL_AFTER_S or not slot.is_taken:
            self._stopping[name] = now
            self._cancel(name)

    def _forget(self, name: str, slot: PartSlot) -> None:
        self._listener.remove(slot)
        del self._slots[name]
        if self._stopping.pop(name, None) is not None:
            self._cancel(name)

    def _cancel(self, name: str) -> None:
        try:
            self._launcher.cancel(name)
        except (Py4JError, OSError) as error:
            # If the JVM is gone, so is the task.
            _LOG.warning("could not cancel a task", task=name, error=str(error))


def _name(part: BulkPart) -> str:
    return f"strandline-{part.dataset}-{part.job}-{part.part}-{part.epoch}"
