"""The responses to requests that fail: the status according to the remote-write specification, and the remedy.

A sender retries a request that was answered with 5xx until it succeeds, and drops a request that was answered with 4xx.
So 4xx is only for requests that will never be accepted. The specification also has 429, which a sender may retry. But
Prometheus by default drops such requests, so the gateway answers 503 instead.
"""

from strandline.errors import StrandlineError
from strandline.node.gateway.figures import Outcome
from strandline.node.gateway.in_flight import Usage
from strandline.node.http.responses import Response

# Prometheus logs at most this many bytes of the first line of a response.
_MAX_TEXT = 500

_RETRY_AFTER_S = {Outcome.PUT_OFF: 1, Outcome.KAFKA_UNAVAILABLE: 5, Outcome.CLOCKS_DISAGREE: 5, Outcome.STOPPING: 1}
"""The values of the header Retry-After, in seconds."""


class WriteRejected(StrandlineError):  # noqa: N818 - often a temporary condition, and no error
    """A request that does not succeed: the status code, the outcome for metrics, and the text of the response."""

    def __init__(self, status: int, outcome: Outcome, message: str, *, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.status, self.outcome = status, outcome

    def response(self) -> Response:
        """The HTTP response, with one line of text."""
        headers = (("Retry-After", str(_RETRY_AFTER_S[self.outcome])),) if self.outcome in _RETRY_AFTER_S else ()
        line = " ".join(str(self).split())
        text = line if len(line) <= _MAX_TEXT else f"{line[: _MAX_TEXT - 3]}..."
        return Response.text(f"{text}\n", status=self.status, headers=headers)


def refused(error: StrandlineError) -> WriteRejected:
    """The request is invalid: the same bytes will never be accepted."""
    return WriteRejected(400, Outcome.REFUSED, error.message, remedy=error.remedy)


def unsupported(message: str, *, remedy: str) -> WriteRejected:
    """Another version or encoding of the protocol. A sender that supports several may fall back to ours."""
    return WriteRejected(415, Outcome.UNSUPPORTED, message, remedy=remedy)


def remote_write_2() -> WriteRejected:
    """Remote write 2.0. Prometheus does not fall back, but drops the request."""
    return WriteRejected(
        415,
        Outcome.REMOTE_WRITE_2,
        "remote write 2.0 is not supported",
        remedy="Send remote write 1.0: in Prometheus, set protobuf_message: prometheus.WriteRequest under remote_write",
    )


def too_large(size: str, limit: int) -> WriteRejected:
    """The body is larger than `gateway.max_body`."""
    return WriteRejected(
        413,
        Outcome.TOO_LARGE,
        f"the request has {size} bytes, and the limit is {limit}",
        remedy="Send fewer samples in a request (max_samples_per_send), or raise gateway.max_body",
    )


def put_off(waited_s: float, usage: Usage, unacknowledged_s: float) -> WriteRejected:
    """`gateway.max_in_flight` is reached. The text names the cause, by what uses the room. `unacknowledged_s` is how
    long the oldest request has waited for Kafka; 0 if none has.
    """
    reached = f"gateway.max_in_flight ({usage.limit} bytes) is reached, and no room became free within {waited_s:g} s"
    arriving = f"{usage.arriving_requests} requests that are still arriving hold {usage.arriving_bytes} bytes"
    at_kafka = f"{usage.arrived_bytes} bytes wait for Kafka, the oldest for {unacknowledged_s:.1f} s"
    if usage.arriving_bytes > usage.arrived_bytes:
        cause = f"{arriving}; Kafka is not the cause: {at_kafka}"
        remedy = "If this lasts, let senders send faster or fewer requests at a time, or raise gateway.max_in_flight"
    elif unacknowledged_s >= waited_s:
        cause = f"Kafka does not acknowledge: {at_kafka}"
        remedy = "If this lasts, look at Kafka's brokers"
    else:
        cause = f"senders send more at a time than the limit allows: {at_kafka}, which is normal; {arriving}"
        remedy = "If this lasts, raise gateway.max_in_flight or start another gateway"
    return WriteRejected(503, Outcome.PUT_OFF, f"{reached}: {cause}", remedy=f"Send it again later. {remedy}")


def kafka_unavailable(error: StrandlineError) -> WriteRejected:
    """Kafka has not acknowledged all records of the request."""
    return WriteRejected(503, Outcome.KAFKA_UNAVAILABLE, error.message, remedy="Send it again later, all of it")


def clocks_disagree(clocks: str, error: StrandlineError) -> WriteRejected:
    """Samples are outside of the time limits by the gateway's clock, which may be wrong."""
    return WriteRejected(
        503,
        Outcome.CLOCKS_DISAGREE,
        f"{clocks}, so samples are not rejected for their time: {error.message}",
        remedy="Fix time synchronisation (NTP) of the gateway and the brokers, and send it again",
    )


def stopping() -> WriteRejected:
    """The gateway is stopping."""
    return WriteRejected(503, Outcome.STOPPING, "the gateway is being stopped", remedy="Send it again later")


def too_slow() -> WriteRejected:
    """The body did not arrive in time. A retry may succeed, so this must not be a 4xx."""
    return WriteRejected(503, Outcome.CLIENT_GONE, "the request's body did not arrive in time", remedy="Send it again")
