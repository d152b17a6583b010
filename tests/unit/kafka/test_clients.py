"""Creating clients, and what they log."""

import logging

import pytest
from confluent_kafka import Consumer, KafkaError

from strandline.clock import ManualClock
from strandline.kafka.clients import BrokerErrors, LibrdkafkaLogger, create_client
from strandline.kafka.errors import KafkaFailed

pytestmark = pytest.mark.unit


def test_options_that_the_library_refuses_are_named() -> None:
    with pytest.raises(KafkaFailed, match=r"fetch\.wait\.for\.ever.*\[kafka\.client\]"):
        create_client(Consumer, {"group.id": "strandline-x", "fetch.wait.for.ever": True})


def test_lines_of_the_library_are_logged_at_their_level(caplog: pytest.LogCaptureFixture) -> None:
    LibrdkafkaLogger().log(logging.WARNING, "%s [%s] %s", "REQTMOUT", "rdkafka#consumer-1", "timed out")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "REQTMOUT [rdkafka#consumer-1] timed out")
    ]


def test_lines_about_attempts_to_connect_are_for_debugging_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    LibrdkafkaLogger().log(logging.ERROR, "%s [%s] %s", "FAIL", "rdkafka#consumer-1", "connection refused")
    assert [record.levelname for record in caplog.records] == ["DEBUG"]


def test_each_kind_of_error_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    errors = BrokerErrors("metrics", clock)
    refused, away = KafkaError(KafkaError._TRANSPORT, "refused"), KafkaError(KafkaError._ALL_BROKERS_DOWN, "all down")
    for _ in range(100):
        errors.on_error(refused)
        errors.on_error(away)
    assert caplog.messages == ["topic metrics: refused", "topic metrics: all down"]
    clock.sleep(59.9)
    errors.on_error(refused)
    assert len(caplog.messages) == 2
    clock.sleep(0.1)
    errors.on_error(refused)
    assert caplog.messages[2:] == ["topic metrics: refused"]
