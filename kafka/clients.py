"""Creates clients of librdkafka, and sends their log lines and errors to our log."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from strandline.clock import Clock
from strandline.kafka.error_mapping import error_of
from strandline.kafka.errors import KafkaFailed

ClientOptions = Mapping[str, str | int | bool]
"""Options of librdkafka, as `librdkafka_options` makes them from the settings."""

Client = TypeVar("Client")

# The library logs these for each attempt to connect, several times a second, and also calls the error callback.
_REPORTED_BY_CALLBACK = ("FAIL", "ERROR")

_LOG_INTERVAL_S = 60.0

_LOG = logging.getLogger(__name__)


def create_client(kind: Callable[..., Client], options: Mapping[str, Any]) -> Client:
    """Create a client. It does not connect yet, so the only possible error is an invalid option (`KafkaFailed`)."""
    try:
        return kind(dict(options), logger=LibrdkafkaLogger())
    except KafkaException as failure:
        raise KafkaFailed(
            f"Kafka's client library rejects its options: {error_of(failure).str()}",
            remedy="Check the tables [kafka] and [kafka.client] in the settings",
        ) from failure


class LibrdkafkaLogger:
    """The logger that librdkafka gets. Without one it writes to stderr, regardless of the log settings."""

    def log(self, level: int, text: str, *values: object) -> None:
        """The same as `Logger.log`. The first value is the facility of the line."""
        if values and values[0] in _REPORTED_BY_CALLBACK:
            level = logging.DEBUG
        _LOG.log(level, text, *values)


class BrokerErrors:
    """Logs errors that belong to no request, such as a lost connection. The library retries by itself."""

    def __init__(self, topic: str, clock: Clock) -> None:
        self._topic, self._clock = topic, clock
        self._next_log_at: dict[int, float] = {}

    def on_error(self, error: KafkaError) -> None:
        """Log the error, at most once a minute for each error code: there may be several errors a second."""
        now = self._clock.monotonic()
        if now >= self._next_log_at.get(error.code(), now):
            self._next_log_at[error.code()] = now + _LOG_INTERVAL_S
            _LOG.warning("topic %s: %s", self._topic, error.str())
