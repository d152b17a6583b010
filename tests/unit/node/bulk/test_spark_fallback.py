"""Where parts run if Spark can't be started."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

import pytest

from strandline.clock import ManualClock
from strandline.node.bulk import spark_running
from strandline.node.bulk.foreground import runner_for
from strandline.node.bulk.placement import Placement
from strandline.node.settings.sections import Settings
from strandline.node.steps import LineSteps
from strandline.spark.session import SparkUnavailable

pytestmark = pytest.mark.unit

CLOCK = ManualClock(0)


@contextmanager
def unstarted(*_: object) -> Iterator[None]:
    raise SparkUnavailable("no jars of Spark's Kafka source were found in /jars", remedy="Run `make setup`")
    yield


@contextmanager
def started(*_: object) -> Iterator[None]:
    yield


def test_with_auto_parts_run_in_the_process_with_a_warning_if_spark_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_running, "spark_runner", unstarted)
    printed, warnings = StringIO(), list[str]()
    steps = LineSteps("Importing", printed, CLOCK)
    with runner_for(Placement.SPARK, Settings(), steps, CLOCK, warn=warnings.append) as runner:
        assert runner is None
    (warning,) = warnings
    assert "parts run in this process" in warning
    assert "no jars of Spark's Kafka source were found in /jars. Run `make setup`" in warning
    assert "Starting Spark: failed" in printed.getvalue()


def test_an_error_of_starting_spark_is_raised_if_spark_was_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_running, "spark_runner", unstarted)
    steps = LineSteps("Importing", StringIO(), CLOCK)
    with pytest.raises(SparkUnavailable, match="no jars"), runner_for(Placement.SPARK, Settings(), steps, CLOCK):
        pytest.fail("there is no Spark")


def test_errors_of_the_work_itself_cause_no_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_running, "spark_runner", started)
    steps, warnings = LineSteps("Importing", StringIO(), CLOCK), list[str]()
    with (
        pytest.raises(SparkUnavailable, match="later"),
        runner_for(Placement.SPARK, Settings(), steps, CLOCK, warn=warnings.append),
    ):
        raise SparkUnavailable("later")
    assert not warnings


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(SparkUnavailable, match=rf"port {port}: .*in use.*jobs.driver_port"):
            spark_running._listening("127.0.0.1", port, "127.0.0.1")
