"""How clients of the library are made: where their lines go, and what it means if they can't be made."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from strandline.clock import Clock
from strandline.kafka.error_mapping import error_of
from strandline.kafka.errors import KafkaFailed

ClientOptions = Mapping[str, str | int | bool]
"""What `librdkafka_options` makes of the settings."""

Client = TypeVar("Client")

# The library writes a line for each attempt to connect, several a second, and tells the error callback as well.
_TOLD_BY_CALLBACK = ("FAIL", "ERROR")

_SAY_AGAIN_S = 60.0

_LOG = logging.getLogger(__name__)


def create_client(kind: Callable[..., Client], options: Mapping[str, Any]) -> Client:
    """A client of this kind. No connection is made yet, so only the options can be wrong."""
    try:
        return kind(dict(options), logger=LibrdkafkaLogger())
    except KafkaException as failure:
        raise KafkaFailed(
            f"Kafka's client library refuses its options: {error_of(failure).str()}",
            remedy="Check the tables [kafka] and [kafka.client] in the settings",
        ) from failure


class LibrdkafkaLogger:
    """Where the library's own lines go, in place of a logger: without it they go to stderr, past every log setting."""

    def log(self, level: int, text: str, *values: object) -> None:
        """As a logger's; the first value is the line's facility."""
        if values and values[0] in _TOLD_BY_CALLBACK:
            level = logging.DEBUG
        _LOG.log(level, text, *values)


class BrokerErrors:
    """Logs errors that belong to no request, such as a lost connection. The library goes on trying by itself."""

    def __init__(self, topic: str, clock: Clock) -> None:
        self._topic, self._clock = topic, clock
        self._quiet_until: dict[int, float] = {}

    def on_error(self, error: KafkaError) -> None:
        """One line a minute of each kind: there may be several errors a second."""
        now = self._clock.monotonic()
        if now >= self._quiet_until.get(error.code(), now):
            self._quiet_until[error.code()] = now + _SAY_AGAIN_S
            _LOG.warning("topic %s: %s", self._topic, error.str())
