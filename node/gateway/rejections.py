"""Requests that are not answered with success: the status by remote write's book, and what to do.

A sender repeats a request that was answered with 5xx, whole and until it works. It drops what was answered with 4xx,
so these are for requests that will never be taken, and for nothing else. The book has 429 as well, which a sender may
repeat; but Prometheus drops it unless it is told not to, so that what is put off is a 503, too.
"""

from strandline.errors import StrandlineError
from strandline.node.gateway.figures import Outcome
from strandline.node.gateway.in_flight import Usage
from strandline.node.http.responses import Response

# Prometheus logs the first line of an answer, and of that so many bytes.
_MAX_TEXT = 500

_RETRY_AFTER_S = {Outcome.PUT_OFF: 1, Outcome.KAFKA_UNAVAILABLE: 5, Outcome.CLOCKS_DISAGREE: 5, Outcome.STOPPING: 1}
"""After how many seconds it makes sense to send a request again."""


class WriteRejected(StrandlineError):  # noqa: N818 - what is wrong may well be nobody's error
    """A request is answered with this."""

    def __init__(self, status: int, outcome: Outcome, message: str, *, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.status, self.outcome = status, outcome

    def response(self) -> Response:
        """The answer: one line of text."""
        headers = (("Retry-After", str(_RETRY_AFTER_S[self.outcome])),) if self.outcome in _RETRY_AFTER_S else ()
        line = " ".join(str(self).split())
        text = line if len(line) <= _MAX_TEXT else f"{line[: _MAX_TEXT - 3]}..."
        return Response.text(f"{text}\n", status=self.status, headers=headers)


def refused(error: StrandlineError) -> WriteRejected:
    """The same bytes will never be taken."""
    return WriteRejected(400, Outcome.REFUSED, error.message, remedy=error.remedy)


def unsupported(message: str, *, remedy: str) -> WriteRejected:
    """Another form of the protocol; a sender that knows several may fall back to the one that we know."""
    return WriteRejected(415, Outcome.UNSUPPORTED, message, remedy=remedy)


def remote_write_2() -> WriteRejected:
    """Prometheus drops the request: it does not fall back."""
    return WriteRejected(
        415,
        Outcome.REMOTE_WRITE_2,
        "remote write 2.0 is not supported",
        remedy="Send remote write 1.0: in Prometheus, set protobuf_message: prometheus.WriteRequest under remote_write",
    )


def too_large(size: str, limit: int) -> WriteRejected:
    """More bytes than are read at all."""
    return WriteRejected(
        413,
        Outcome.TOO_LARGE,
        f"the request has {size} bytes, and at most {limit} are taken",
        remedy="Send fewer samples in a request (max_samples_per_send), or raise gateway.max_body",
    )


def put_off(waited_s: float, usage: Usage, unacknowledged_s: float) -> WriteRejected:
    """There was no room for it. What takes the room is the cause: `unacknowledged_s` is how long the oldest request has
    waited for Kafka, 0 for none.
    """
    reached = f"gateway.max_in_flight ({usage.limit} bytes) is reached, and {waited_s:g} s made no room"
    arriving = f"{usage.arriving_requests} requests that are still arriving hold {usage.arriving_bytes} bytes"
    at_kafka = f"{usage.arrived_bytes} bytes wait for Kafka, the oldest for {unacknowledged_s:.1f} s"
    if usage.arriving_bytes > usage.arrived_bytes:
        cause = f"{arriving}; Kafka is not the cause: {at_kafka}"
        remedy = "If this lasts, let senders send faster or fewer requests at a time, or raise gateway.max_in_flight"
    elif unacknowledged_s >= waited_s:
        cause = f"Kafka does not acknowledge: {at_kafka}"
        remedy = "If this lasts, look at Kafka's brokers"
    else:
        cause = f"more is sent at a time than there is room for: {at_kafka}, which is not long; {arriving}"
        remedy = "If this lasts, raise gateway.max_in_flight or start another gateway"
    return WriteRejected(503, Outcome.PUT_OFF, f"{reached}: {cause}", remedy=f"Send it again later. {remedy}")


def kafka_unavailable(error: StrandlineError) -> WriteRejected:
    """Kafka does not have all of it, or has not said so."""
    return WriteRejected(503, Outcome.KAFKA_UNAVAILABLE, error.message, remedy="Send it again later, all of it")


def clocks_disagree(clocks: str, error: StrandlineError) -> WriteRejected:
    """Samples are out of time by the gateway's clock, which may be wrong."""
    return WriteRejected(
        503,
        Outcome.CLOCKS_DISAGREE,
        f"{clocks}, so that samples are not refused for their time: {error.message}",
        remedy="Fix time synchronisation (NTP) of the gateway and the brokers, and send it again",
    )


def stopping() -> WriteRejected:
    """The gateway is about to end."""
    return WriteRejected(503, Outcome.STOPPING, "the gateway is being stopped", remedy="Send it again later")


def too_slow() -> WriteRejected:
    """The body did not come in time. That may be otherwise next time, so it must not be a 4xx."""
    return WriteRejected(503, Outcome.CLIENT_GONE, "the request's body did not come in time", remedy="Send it again")
