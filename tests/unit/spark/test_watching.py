"""Spark's failures, translated to our errors, and the end of an action."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from strandline.errors import Retryable
from strandline.recovery.replay.runner import ReplayFailed, SessionLost
from strandline.spark import watching
from strandline.spark.watching import RecordsGone, ScratchDiskFull, is_answering, run_watched, translate_errors
from strandline.store.protocol import StoreUnavailable

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _no_session_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has never had a real session; otherwise PySpark's threads search for one."""
    monkeypatch.setattr(SparkContext, "_gateway", None)


TEXT = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "tasks.py", line 70, in write
    outcome = reduce_unit(given, unit)
strandline.store.protocol.StoreRefused: no such table

\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:581)
\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:582)
"""


class Context:
    """The part of a Spark context that is used. `call` stands for a call into its JVM."""

    def __init__(self, call: Callable[[], bool] = lambda: False) -> None:
        self._jsc: Any = self
        self.isStopped = call
        self.cancelled = 0

    def sc(self) -> "Context":
        return self

    def setJobGroup(self, *_: object, **__: object) -> None:  # noqa: N802 - as PySpark has it
        self.isStopped()

    def cancelJobGroup(self, _group: str) -> None:  # noqa: N802
        self.cancelled += 1
        self.isStopped()

    def statusTracker(self) -> None:  # noqa: N802
        raise ConnectionRefusedError(111, "Connection refused")


def alive() -> Any:
    return Context()


def refused() -> bool:
    raise ConnectionRefusedError(111, "Connection refused")


def cut_off() -> bool:
    raise Py4JNetworkError("Answer from Java side is empty")


def dead() -> Any:
    return Context(refused)


def test_a_failure_has_the_action_and_the_reason_without_java_stack_frames() -> None:
    with pytest.raises(ReplayFailed) as failed, translate_errors("the replay of metrics", alive()):
        raise PySparkException(TEXT)
    assert failed.value.message.startswith("the replay of metrics failed: An exception was thrown")
    assert "StoreRefused: no such table" in failed.value.message
    assert "PythonRunner.scala" not in failed.value.message
    assert not isinstance(failed.value, RecordsGone)


def test_deleted_records_are_a_separate_error() -> None:
    text = "[KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data may have been lost because they are not available in Kafka"
    with pytest.raises(RecordsGone), translate_errors("the replay of metrics", alive()):
        raise PySparkException(text)


def test_a_store_that_did_not_answer_an_executor_is_one_that_did_not_answer() -> None:
    text = TEXT.replace("StoreRefused: no such table", "StoreUnavailable: no answer for 30 s")
    with pytest.raises(StoreUnavailable, match="no answer for 30 s"), translate_errors("the replay", alive()):
        raise PySparkException(text)


def test_a_message_that_only_mentions_such_an_error_is_not_one() -> None:
    with pytest.raises(ReplayFailed), translate_errors("the replay", alive()):
        raise PySparkException(TEXT.replace("no such table", "what a StoreUnavailable would say"))


@pytest.mark.parametrize("reason", ["java.io.IOException: No space left on device", "Disk quota exceeded"])
def test_a_full_disk_of_spark_is_not_a_fault_of_the_jobs(reason: str) -> None:
    with pytest.raises(ScratchDiskFull, match=r"spark\.local\.dir") as failed, translate_errors("the replay", alive()):
        raise PySparkException(f"Job aborted: task 3 failed 4 times: {reason}\n\tat java.base/sun.nio.ch")
    assert reason in failed.value.message
    assert isinstance(failed.value, Retryable)
    assert not isinstance(failed.value, ReplayFailed), "it is not counted as a failure of the jobs"


@pytest.mark.parametrize("error", [OSError(32, "Broken pipe"), Py4JError("no"), PySparkException("no")])
def test_any_failure_of_a_session_that_is_gone_is_a_lost_session(error: Exception) -> None:
    with (
        pytest.raises(SessionLost, match=r"the replay failed: .*session is gone"),
        translate_errors("the replay", dead()),
    ):
        raise error


def test_a_broken_connection_to_a_session_that_answers_is_a_failure() -> None:
    with pytest.raises(ReplayFailed, match="Broken pipe"), translate_errors("the replay", alive()):
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize(
    ("call", "answers"), [(lambda: False, True), (lambda: True, False), (refused, False), (cut_off, False)]
)
def test_a_session_answers_if_its_jvm_is_there_and_has_not_stopped_it(call: Callable[[], bool], answers: bool) -> None:
    context: Any = Context(call)
    assert is_answering(context) == answers


def test_a_session_that_this_process_has_stopped_does_not_answer() -> None:
    stopped = alive()
    stopped._jsc = None
    assert not is_answering(stopped)


def test_other_errors_are_not_translated() -> None:
    with pytest.raises(ZeroDivisionError), translate_errors("the replay of metrics", alive()):
        raise ZeroDivisionError


def test_an_action_of_a_session_that_is_gone_is_a_lost_session() -> None:
    with pytest.raises(SessionLost):
        run_watched(dead(), "g", lambda: 1, lambda _: None, what="the replay")


def test_an_action_that_ends_before_it_begins_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    def thread(*, target: Callable[[], None], name: str, daemon: bool) -> threading.Thread:
        del target
        return threading.Thread(target=lambda: None, name=name, daemon=daemon)

    monkeypatch.setattr(watching, "InheritableThread", thread)
    with pytest.raises(ReplayFailed, match="could not be started"):
        run_watched(alive(), "g", lambda: 1, lambda _: None, what="the replay")


class EnoughError(Exception):
    """The progress callback cancels the action."""


def enough(_fraction: float) -> None:
    raise EnoughError


def test_an_exception_of_the_progress_callback_cancels_the_action_even_if_its_jvm_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "_POLL_INTERVAL_S", 0.01)
    over = threading.Event()

    class Cancelled(Context):
        def cancelJobGroup(self, group: str) -> None:  # noqa: N802
            super().cancelJobGroup(group)
            over.set()
            raise ConnectionRefusedError(111, "Connection refused")

    context: Any = Cancelled()
    with pytest.raises(EnoughError):
        run_watched(context, "g", over.wait, enough, what="the replay")
    assert context.cancelled >= 1


def test_an_action_that_cannot_be_ended_is_a_lost_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_POLL_INTERVAL_S", 0.001)
    monkeypatch.setattr(watching, "_MAX_CANCEL_POLLS", 7)
    over = threading.Event()
    context = alive()
    with pytest.raises(SessionLost, match="does not end"):
        run_watched(context, "g", over.wait, enough, what="the replay")
    assert context.cancelled == 7
    over.set()
