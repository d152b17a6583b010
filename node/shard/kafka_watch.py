"""What is known about the brokers while a partition is read, beyond the records themselves.

A reader hears nothing when its topic is deleted, and reads on in one that was made again under the same name; and after
brokers were away it hears nothing of their return until a record comes. So they are asked, now and then, without
waiting for the answer.

A broker that has only just started, or lags behind its controller, may not know a topic that is there. A shard that
believes it closes its open bucket for good. So a topic counts as gone only if the brokers have answered nothing else
for a minute; until then it counts as out of reach.

After an outage the library's consumer may stay silent though the brokers answer other questions: it was seen to fetch
nothing for more than 20 s, and its users report far longer. So brokers count as back only when they have sent something
of the partition, and a reader that hears nothing begins to fetch anew.
"""

import logging
from concurrent.futures import Future
from typing import Any, Protocol

from confluent_kafka import KafkaError

from strandline.clock import Clock
from strandline.errors import Fatal, Retryable, StrandlineError
from strandline.kafka.clients import BrokerErrors
from strandline.kafka.errors import KafkaRefused
from strandline.kafka.meaning import ALL_DOWN
from strandline.node.shard.kafka_admin import TopicIdentity
from strandline.node.shard.kafka_errors import GROUP_REFUSED, meaning
from strandline.node.shard.log import LogUnreachable, TopicUnfit

REQUEST_INTERVAL_S = 5.0
GONE_AFTER_S = 60.0
_OUTAGE_REQUEST_INTERVAL_S = 1.0
# How long a reader that has begun to fetch anew is left alone. Each time twice as long as before: over a slow network
# one answer may take minutes.
_MIN_FETCH_PAUSE_S, _MAX_FETCH_PAUSE_S = 5.0, 300.0

_LOG = logging.getLogger(__name__)


class IdentitySource(Protocol):
    """The part of `KafkaAdmin` that is needed here."""

    topic: str

    def request_identity(self) -> "Future[Any]": ...

    def identity_in(self, answer: "Future[Any]") -> TopicIdentity: ...


class TopicWatch:
    """Used by the thread that reads, which calls `check` each time. Nothing here waits."""

    def __init__(
        self,
        admin: IdentitySource,
        partition: int,
        clock: Clock,
        every: float = REQUEST_INTERVAL_S,
        gone_after: float = GONE_AFTER_S,
    ) -> None:
        """The brokers are asked every so many seconds. A topic or partition that they have not known for `gone_after`
        seconds is gone.
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
        """From now on the topic is the one with this id. An answer that is under way may still be about another."""
        self._topic_id, self._pending = topic_id, None

    def check(self) -> None:
        """Take in an answer that has come, ask again when it is time. Raises `TopicUnfit` if the topic is another one,
        or is gone for good, or the partition is.
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
            _LOG.info("topic %s: the brokers answer again", self._admin.topic)
            self._outage, self._is_answering = None, False
            self._restart_fetch_at, self._fetch_pause = self._clock.monotonic(), _MIN_FETCH_PAUSE_S

    def must_restart_fetch(self) -> bool:
        """Whether the reader has to begin fetching at its position anew: the brokers were away and answer again, but
        have sent nothing of the partition since. Asked again, it says no for a while.
        """
        now = self._clock.monotonic()
        if not self._is_answering or now < self._restart_fetch_at:
            return False
        self._restart_fetch_at = now + self._fetch_pause
        self._fetch_pause = min(2 * self._fetch_pause, _MAX_FETCH_PAUSE_S)
        return True

    def report_error(self, error: KafkaError) -> None:
        """The library tells of an error that belongs to no request. It goes on trying by itself."""
        outage = meaning(error, f"topic {self._admin.topic} can't be read", self._admin.topic)
        if error.code() == ALL_DOWN or (isinstance(outage, KafkaRefused) and error.code() != GROUP_REFUSED):
            self._missing_since = None
            self._set_outage(outage)
        self._errors.heard(error)

    def require_reachable(self) -> None:
        """Raise what keeps the brokers from sending anything, as far as it is known."""
        if self._outage is not None:
            raise _without_traceback(self._outage)

    def not_found(self, error: TopicUnfit) -> LogUnreachable:
        """A broker does not know the topic or the partition: what that means for now. Raises the error itself once the
        brokers have known nothing of it for long enough.
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
                f"topic {identity.topic} was deleted and made again: its id was {self._topic_id} and is now "
                f"{identity.topic_id}",
                remedy="Start the node again: it says what a reset would mean before it reads the new topic",
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
        # A refusal says more than the silence of all brokers that follows it.
        if not isinstance(self._outage, Fatal):
            self._outage = _without_traceback(error)
        self._request_soon()

    def _request_soon(self) -> None:
        self._next_request_at = min(self._next_request_at, self._clock.monotonic() + _OUTAGE_REQUEST_INTERVAL_S)


def _without_traceback(error: StrandlineError) -> StrandlineError:
    """The same without its trace, which would hold on to everything that was in use when it was raised."""
    return type(error)(error.message, remedy=error.remedy)
