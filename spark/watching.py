"""Runs a Spark action while reporting its progress to the caller, which may cancel it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException

from strandline.disk import NO_SPACE
from strandline.errors import Retryable
from strandline.recovery.replay.runner import ReplayFailed, SessionLost
from strandline.store.protocol import StoreUnavailable

T = TypeVar("T")

_POLL_INTERVAL_S = 0.5
# A cancelled action must have ended after this many polls.
_MAX_CANCEL_POLLS = 240
# What a call into the JVM raises if the JVM is gone or has failed. OSError comes from the socket.
_CALL_ERRORS = (Py4JError, OSError)
# Spark's errors if Kafka no longer has the records of a range.
_LOSS_ERRORS = ("data may have been lost", "OffsetOutOfRange", "KAFKA_DATA_LOSS")
# Part of an executor's traceback if the store did not answer there: the qualified name of the error's class.
_STORE_ERROR = f"{StoreUnavailable.__module__}.{StoreUnavailable.__qualname__}"
_MAX_TEXT_CHARS = 2_000


SCRATCH_REMEDY = (
    "Free space in spark.local.dir (or SPARK_LOCAL_DIRS) of the driver and the executors. The jobs are retried "
    "automatically"
)
_REMEDY = (
    "Restart the worker, because a process can have only one session. If this happens again, check the JVM's memory"
)


class ScratchDiskFull(Retryable):
    """A disk that Spark writes to, on the driver or an executor, is full. The jobs are not at fault."""


class RecordsGone(ReplayFailed):
    """Kafka no longer has some of the records. The same job would fail again; a new plan may succeed."""


class _Action(Generic[T]):
    """An action in a separate thread, and in a job group by which it can be monitored and cancelled."""

    def __init__(self, context: SparkContext, group: str, act: Callable[[], T]) -> None:
        self._context, self._group, self._act = context, group, act
        self._results: list[T] = []
        self._fraction = 0.0
        self._failure: BaseException | None = None
        self._thread = InheritableThread(target=self._run, name=group, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for the end; return whether it has ended within the time."""
        # Not by a flag that the thread sets: it may end earlier, in PySpark's own code.
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """Cancel it, and wait until it has ended. Raises `SessionLost` if it does not end."""
        # Repeatedly, because nothing can be cancelled while the query is still being planned.
        for _ in range(_MAX_CANCEL_POLLS):
            if not self._thread.is_alive():
                return
            # If the JVM is gone, so is the action.
            with suppress(*_CALL_ERRORS):
                self._context.cancelJobGroup(self._group)
            self._thread.join(_POLL_INTERVAL_S)
        if self._thread.is_alive():
            raise SessionLost(f"the Spark query {self._group} was cancelled but does not end", remedy=_REMEDY)

    def result(self) -> T:
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        if not self._results:
            raise Py4JError(f"the Spark query {self._group} could not be started")
        return self._results[0]

    def fraction(self) -> float:
        """The share of its tasks that is done."""
        # The action itself reports errors of Spark.
        with suppress(*_CALL_ERRORS):
            self._fraction = self._part_done()
        return self._fraction

    def _part_done(self) -> float:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        done = [one.numCompletedTasks / one.numTasks for one in stages if one is not None and one.numTasks]
        # Stages that have not started may be missing. There are at least two: one reads, one writes.
        return sum(done) / max(2, len(done))

    def _run(self) -> None:
        try:
            self._context.setJobGroup(self._group, "replay", interruptOnCancel=False)
            self._results.append(self._act())
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            self._failure = error


def run_watched(
    context: SparkContext, group: str, act: Callable[[], T], on_progress: Callable[[float], None], *, what: str
) -> T:
    """Run an action and return its result. `on_progress` is called in this thread with the share that is done; an
    exception that it raises cancels the action.

    Raises what `translate_errors` raises, with Spark's reason.
    """
    action = _Action(context, group, act)
    with translate_errors(what, context):
        action.start()
    try:
        while not action.wait(_POLL_INTERVAL_S):
            on_progress(action.fraction())
    except BaseException:
        action.cancel()
        raise
    with translate_errors(what, context):
        return action.result()


@contextmanager
def translate_errors(what: str, context: SparkContext) -> Iterator[None]:
    """Translates Spark's errors and adds `what` was attempted. Raises `SessionLost` if the session is gone,
    `RecordsGone`, `StoreUnavailable` if the store did not answer an executor, `ScratchDiskFull`, or else
    `ReplayFailed`.
    """
    try:
        yield
    except (*_CALL_ERRORS, PySparkException) as error:
        text = str(error)
        message = f"{what} failed: {reason_of(text)}"
        if not is_answering(context):
            raise SessionLost(f"{message}; the Spark session is gone", remedy=_REMEDY) from error
        if any(sign in text for sign in _LOSS_ERRORS):
            raise RecordsGone(message) from error
        if _STORE_ERROR in text:
            raise StoreUnavailable(message) from error
        if any(sign in text for sign in NO_SPACE):
            raise ScratchDiskFull(message, remedy=SCRATCH_REMEDY) from error
        raise ReplayFailed(message) from error


def is_answering(context: SparkContext) -> bool:
    """Whether a session can still be used: its JVM runs, and has not stopped the session."""
    java = context._jsc  # noqa: SLF001 - PySpark has no public way to check this
    try:
        return java is not None and not java.sc().isStopped()
    except _CALL_ERRORS:
        return False


def reason_of(text: str) -> str:
    """The error lines of a failure that has passed through Python and Java, without stack frames."""
    lines = [line.strip() for line in text.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("at ", "File ", "Traceback", "..."))]
    return " | ".join(dict.fromkeys(kept))[:_MAX_TEXT_CHARS]
