"""Monitors the topic and the brokers while a partition is read.

A consumer does not notice that its topic was deleted, and continues in a topic that was recreated with the same name.
After an outage, it does not notice that the brokers are available again until a record arrives. Therefore the brokers
are asked for the topic's identity regularly, without waiting for the answer.

A broker that has just started, or lags behind its controller, may not know an existing topic. A shard that trusts such
an answer would close its open bucket for good. Therefore a topic counts as deleted only if the brokers have given no
other answer for a minute; until then it counts as unreachable.

After an outage, the library's consumer may stay silent although the brokers answer other requests: we have seen it
fetch nothing for more than 20 s, and its users report much longer. Therefore an outage is over only when the brokers
have sent something of the partition, and a silent reader restarts its fetch.
"""

import logging
from concurrent.futures import Future
from typing import Any, Protocol

from confluent_kafka import KafkaError

from strandline.clock import Clock
from strandline.errors import Fatal, Retryable, StrandlineError
from strandline.kafka.clients import BrokerErrors
from strandline.kafka.error_mapping import ALL_DOWN
from strandline.kafka.errors import KafkaRefused
from strandline.node.shard.kafka_admin import TopicIdentity
from strandline.node.shard.kafka_errors import GROUP_REFUSED, meaning
from strandline.node.shard.log import LogUnreachable, TopicUnfit

REQUEST_INTERVAL_S = 5.0
GONE_AFTER_S = 60.0
_OUTAGE_REQUEST_INTERVAL_S = 1.0
# The pause between two restarts of the fetch. It doubles each time: over a slow network, an answer may take minutes.
_MIN_FETCH_PAUSE_S, _MAX_FETCH_PAUSE_S = 5.0, 300.0

_LOG = logging.getLogger(__name__)


class IdentitySource(Protocol):
    """The part of `KafkaAdmin` that `TopicWatch` uses."""

    topic: str

    def request_identity(self) -> "Future[Any]": ...

    def identity_in(self, answer: "Future[Any]") -> TopicIdentity: ...


class TopicWatch:
    """Used by the reading thread, which calls `check` before each poll. No method waits."""

    def __init__(
        self,
        admin: IdentitySource,
        partition: int,
        clock: Clock,
        every: float = REQUEST_INTERVAL_S,
        gone_after: float = GONE_AFTER_S,
    ) -> None:
        """A request is sent to the brokers `every` this many seconds. A topic or partition that they have not known for
        `gone_after` seconds counts as deleted.
        """
        self._admin, self._partition, self._clock = admin, partition, clock
        self._every, self._gone_after = every, gone_after
        self._topic_id = ""
        self._pending: Future[Any] | None = None
        self._next_request_at = clock.monotonic() + every
        self._missing_since: float | None = None
        self._outage: StrandlineError | None = None
        self._is_answering = False
        self._restart_fetch_at, self._fetch_pause = clock.monotonic(), _MIN_FETCH_PAUSE_S
        self._errors = BrokerErrors(admin.topic, clock)

    def expect(self, topic_id: str) -> None:
        """Expect the topic to have this id from now on. Discards a pending answer, which may be about another topic."""
        self._topic_id, self._pending = topic_id, None

    def check(self) -> None:
        """Process an answer that has arrived, and send the next request when it is due. Raises `TopicUnfit` if the
        topic was recreated, or if it or the partition counts as deleted.
        """
        now = self._clock.monotonic()
        if self._pending is not None and self._pending.done():
            answer, self._pending = self._pending, None
            self._next_request_at = now + self._every
            self._take(answer)
        if self._pending is None and now >= self._next_request_at:
            self._pending = self._admin.request_identity()

    def received(self) -> None:
        """A broker has sent something of the partition."""
        self._missing_since = None
        if self._outage is not None:
            _LOG.info("topic %s: the brokers are available again", self._admin.topic)
            self._outage, self._is_answering = None, False
            self._restart_fetch_at, self._fetch_pause = self._clock.monotonic(), _MIN_FETCH_PAUSE_S

    def must_restart_fetch(self) -> bool:
        """Whether the reader must restart its fetch at its position: the brokers were unreachable and answer again, but
        have sent nothing of the partition since. After returning True, it returns False for a pause.
        """
        now = self._clock.monotonic()
        if not self._is_answering or now < self._restart_fetch_at:
            return False
        self._restart_fetch_at = now + self._fetch_pause
        self._fetch_pause = min(2 * self._fetch_pause, _MAX_FETCH_PAUSE_S)
        return True

    def report_error(self, error: KafkaError) -> None:
        """The library has reported an error that belongs to no request. It retries by itself."""
        outage = meaning(error, f"topic {self._admin.topic} can't be read", self._admin.topic)
        if error.code() == ALL_DOWN or (isinstance(outage, KafkaRefused) and error.code() != GROUP_REFUSED):
            self._missing_since = None
            self._set_outage(outage)
        self._errors.on_error(error)

    def require_reachable(self) -> None:
        """Raise the error of the current outage, if there is one."""
        if self._outage is not None:
            raise _without_traceback(self._outage)

    def not_found(self, error: TopicUnfit) -> LogUnreachable:
        """A broker does not know the topic or the partition. Returns the error to raise for now; raises `error` itself
        once the brokers have not known it for `gone_after`.
        """
        now = self._clock.monotonic()
        if self._missing_since is None:
            self._missing_since = now
        missing_s = now - self._missing_since
        if missing_s >= self._gone_after:
            raise error
        unknown = LogUnreachable(
            f"the brokers have not known partition {self._partition} of topic {self._admin.topic} for "
            f"{missing_s:.0f} s",
            remedy=f"After {self._gone_after:.0f} s it counts as deleted",
        )
        self._set_outage(unknown)
        return unknown

    def compare(self, identity: TopicIdentity) -> None:
        """Raises `TopicUnfit` if this is another topic than the one expected."""
        self._topic_id = self._topic_id or identity.topic_id
        if identity.topic_id != self._topic_id:
            raise TopicUnfit(
                f"topic {identity.topic} was deleted and recreated: its id was {self._topic_id} and is now "
                f"{identity.topic_id}",
                remedy="Restart the node: before it reads the new topic, it reports what a reset would mean",
            )

    def _take(self, answer: "Future[Any]") -> None:
        try:
            identity = self._admin.identity_in(answer)
        except TopicUnfit as error:
            self.not_found(error)
            return
        except (Retryable, Fatal) as error:
            self._missing_since = None
            self._set_outage(error)
            return
        self.compare(identity)
        try:
            identity.require(self._partition)
        except TopicUnfit as error:
            self.not_found(error)
        else:
            self._missing_since = None
            self._is_answering = self._outage is not None

    def _set_outage(self, error: StrandlineError) -> None:
        self._is_answering = False
        # A refusal is more helpful than the following error that all brokers are down.
        if not isinstance(self._outage, Fatal):
            self._outage = _without_traceback(error)
        self._request_soon()

    def _request_soon(self) -> None:
        self._next_request_at = min(self._next_request_at, self._clock.monotonic() + _OUTAGE_REQUEST_INTERVAL_S)


def _without_traceback(error: StrandlineError) -> StrandlineError:
    """A copy without the traceback, which would keep all objects of its frames alive."""
    return type(error)(error.message, remedy=error.remedy)
