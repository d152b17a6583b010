"""Spark's failures, as ours."""

import pytest
from pyspark.errors import PySparkException

from strandline.recovery.replay.runner import ReplayFailed
from strandline.spark.watching import RecordsGone, failures_named

pytestmark = pytest.mark.unit

TEXT = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "tasks.py", line 70, in write
    outcome = reduce_unit(given, unit)
strandline.store.protocol.StoreRefused: no such table

\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:581)
\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:582)
"""


def test_a_failure_says_what_failed_and_why_without_the_calls_of_java() -> None:
    with pytest.raises(ReplayFailed) as failed, failures_named("the replay of metrics"):
        raise PySparkException(TEXT)
    assert failed.value.message.startswith("the replay of metrics failed: An exception was thrown")
    assert "StoreRefused: no such table" in failed.value.message
    assert "PythonRunner.scala" not in failed.value.message
    assert not isinstance(failed.value, RecordsGone)


def test_records_that_are_gone_are_told_apart() -> None:
    text = "[KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data may have been lost because they are not available in Kafka"
    with pytest.raises(RecordsGone), failures_named("the replay of metrics"):
        raise PySparkException(text)


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(ZeroDivisionError), failures_named("the replay of metrics"):
        raise ZeroDivisionError
