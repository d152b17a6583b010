"""Running a Spark action while somebody is told how far it is, and may end it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException

from strandline.recovery.replay.runner import ReplayFailed

T = TypeVar("T")

_LOOK_EVERY_S = 0.5
# What Spark says when Kafka no longer has what it was told to read.
_SIGNS_OF_LOSS = ("data may have been lost", "OffsetOutOfRange", "KAFKA_DATA_LOSS")
_MOST_TEXT = 2_000


class RecordsGone(ReplayFailed):
    """Kafka no longer has some of the records. The same job would fail again; a new plan may not."""


class _Action(Generic[T]):
    """An action in a thread of its own, in a group by which it can be watched and cancelled."""

    def __init__(self, context: SparkContext, group: str, act: Callable[[], T]) -> None:
        self._context, self._group, self._act = context, group, act
        self._results: list[T] = []
        self._fraction = 0.0
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._thread = InheritableThread(target=self._run, name=group, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended by then."""
        return self._ended.wait(seconds)

    def cancel(self) -> None:
        """End it, and wait until it has."""
        # Again and again: as long as the query is still being planned there is nothing to cancel.
        while self._thread.is_alive():
            # A JVM that is gone has ended it.
            with suppress(Py4JError):
                self._context.cancelJobGroup(self._group)
            self._thread.join(_LOOK_EVERY_S)

    def result(self) -> T:
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._results[0]

    def fraction(self) -> float:
        """Which part of its tasks is done."""
        # What is wrong with Spark is for the action to say.
        with suppress(Py4JError):
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
        finally:
            self._ended.set()


def run_watched(
    context: SparkContext, group: str, act: Callable[[], T], heard: Callable[[float], None], *, what: str
) -> T:
    """What an action gives. `heard` is told in this thread how far it is; what that raises cancels the action.

    Raises `ReplayFailed`, or `RecordsGone`, with the reason that Spark has.
    """
    action = _Action(context, group, act)
    action.start()
    try:
        while not action.wait(_LOOK_EVERY_S):
            heard(action.fraction())
    except BaseException:
        action.cancel()
        raise
    with failures_named(what):
        return action.result()


@contextmanager
def failures_named(what: str) -> Iterator[None]:
    """Spark's errors as `ReplayFailed` or `RecordsGone`, with what was to be done."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        text = str(error)
        kind = RecordsGone if any(sign in text for sign in _SIGNS_OF_LOSS) else ReplayFailed
        raise kind(f"{what} failed: {_reason(text)}") from error


def _reason(text: str) -> str:
    """What a person needs of a failure that has passed through Python and Java: the errors, without the calls."""
    lines = [line.strip() for line in text.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("at ", "File ", "Traceback", "..."))]
    return " | ".join(dict.fromkeys(kept))[:_MOST_TEXT]
