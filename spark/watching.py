"""Running a Spark action while somebody is told how far it is, and may end it."""

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
# So many looks after an action was cancelled it must have ended.
_MAX_CANCEL_POLLS = 240
# What a call into the JVM raises if the JVM is gone, or something is wrong there. Sockets have errors of their own.
_CALL_ERRORS = (Py4JError, OSError)
# What Spark says when Kafka no longer has what it was told to read.
_SIGNS_OF_LOSS = ("data may have been lost", "OffsetOutOfRange", "KAFKA_DATA_LOSS")
# What a traceback from an executor says when the store did not answer there: an error's class with its module.
_SIGN_OF_STORE = f"{StoreUnavailable.__module__}.{StoreUnavailable.__qualname__}"
_MAX_TEXT_CHARS = 2_000


SCRATCH_REMEDY = (
    "Free space where spark.local.dir (or SPARK_LOCAL_DIRS) of the driver and the executors lies: the jobs are tried "
    "again by themselves"
)
_REMEDY = "Start the worker again: a process has one session. If this happens again, look at the JVM's memory"


class ScratchDiskFull(Retryable):
    """A disk that Spark writes to, on the driver or an executor, is full. It is no fault of the jobs."""


class RecordsGone(ReplayFailed):
    """Kafka no longer has some of the records. The same job would fail again; a new plan may not."""


class _Action(Generic[T]):
    """An action in a thread of its own, in a group by which it can be watched and cancelled."""

    def __init__(self, context: SparkContext, group: str, act: Callable[[], T]) -> None:
        self._context, self._group, self._act = context, group, act
        self._results: list[T] = []
        self._fraction = 0.0
        self._failure: BaseException | None = None
        self._thread = InheritableThread(target=self._run, name=group, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended by then."""
        # Not by a flag that it sets: it may end before it begins, in what PySpark does first.
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """End it, and wait until it has. Raises `SessionLost` if that can't be had."""
        # Again and again: as long as the query is still being planned there is nothing to cancel.
        for _ in range(_MAX_CANCEL_POLLS):
            if not self._thread.is_alive():
                return
            # A JVM that is gone has ended it.
            with suppress(*_CALL_ERRORS):
                self._context.cancelJobGroup(self._group)
            self._thread.join(_POLL_INTERVAL_S)
        if self._thread.is_alive():
            raise SessionLost(f"the Spark query {self._group} was cancelled and does not end", remedy=_REMEDY)

    def result(self) -> T:
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        if not self._results:
            raise Py4JError(f"the Spark query {self._group} could not be begun")
        return self._results[0]

    def fraction(self) -> float:
        """Which part of its tasks is done."""
        # What is wrong with Spark is for the action to say.
        with suppress(*_CALL_ERRORS):
            self._fraction = self._part_done()
        return self._fraction

    def _part_done(self) -> float:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        done = [one.numCompletedTasks / one.numTasks for one in stages if one is not None and one.numTasks]
        # A stage that has not begun is perhaps not told of: there is one that reads and one that writes.
        return sum(done) / max(2, len(done))

    def _run(self) -> None:
        try:
            self._context.setJobGroup(self._group, "replay", interruptOnCancel=False)
            self._results.append(self._act())
        except BaseException as error:  # noqa: BLE001 - handed over to the thread that waits
            self._failure = error


def run_watched(
    context: SparkContext, group: str, act: Callable[[], T], on_progress: Callable[[float], None], *, what: str
) -> T:
    """What an action gives. `on_progress` is told in this thread how far it is; what that raises cancels the action.

    Raises what `translate_errors` does, with the reason that Spark has.
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
    """Spark's errors as ours, with what was to be done: `SessionLost` if the session is gone, `RecordsGone`,
    `StoreUnavailable` if the store did not answer an executor, `ScratchDiskFull`, or else `ReplayFailed`.
    """
    try:
        yield
    except (*_CALL_ERRORS, PySparkException) as error:
        text = str(error)
        message = f"{what} failed: {reason_of(text)}"
        if not is_answering(context):
            raise SessionLost(f"{message}; the Spark session is gone", remedy=_REMEDY) from error
        if any(sign in text for sign in _SIGNS_OF_LOSS):
            raise RecordsGone(message) from error
        if _SIGN_OF_STORE in text:
            raise StoreUnavailable(message) from error
        if any(sign in text for sign in NO_SPACE):
            raise ScratchDiskFull(message, remedy=SCRATCH_REMEDY) from error
        raise ReplayFailed(message) from error


def is_answering(context: SparkContext) -> bool:
    """Whether a session can still be used: its JVM is there, and has not ended the session by itself."""
    java = context._jsc  # noqa: SLF001 - PySpark has no other way to ask
    try:
        return java is not None and not java.sc().isStopped()
    except _CALL_ERRORS:
        return False


def reason_of(text: str) -> str:
    """What a person needs of a failure that has passed through Python and Java: the errors, without the calls."""
    lines = [line.strip() for line in text.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("at ", "File ", "Traceback", "..."))]
    return " | ".join(dict.fromkeys(kept))[:_MAX_TEXT_CHARS]
