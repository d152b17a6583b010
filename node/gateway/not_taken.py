"""Requests that are not answered with success: the status by remote write's book, and what to do.

A sender repeats a request that was answered with 5xx, whole and until it works. It drops what was answered with 4xx,
so these are for requests that will never be taken, and for nothing else. The book has 429 as well, which a sender may
repeat; but Prometheus drops it unless it is told not to, so that what is put off is a 503, too.
"""

from strandline.errors import StrandlineError
from strandline.node.gateway.figures import Outcome
from strandline.node.http.responses import Response

# Prometheus logs the first line of an answer, and of that so many bytes.
_SHOWN = 500

_AGAIN_S = {Outcome.PUT_OFF: 1, Outcome.KAFKA_UNAVAILABLE: 5, Outcome.STOPPING: 1}
"""After how many seconds it makes sense to send a request again."""


class NotTaken(StrandlineError):  # noqa: N818 - what is wrong may well be nobody's error
    """A request is answered with this."""

    def __init__(self, status: int, outcome: Outcome, message: str, *, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.status, self.outcome = status, outcome

    def response(self) -> Response:
        """The answer: one line of text."""
        headers = (("Retry-After", str(_AGAIN_S[self.outcome])),) if self.outcome in _AGAIN_S else ()
        line = " ".join(str(self).split())
        text = line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."
        return Response.text(f"{text}\n", status=self.status, headers=headers)


def refused(error: StrandlineError) -> NotTaken:
    """The same bytes will never be taken."""
    return NotTaken(400, Outcome.REFUSED, error.message, remedy=error.remedy)


def unsupported(message: str, *, remedy: str) -> NotTaken:
    """Another form of the protocol; a sender that knows several falls back to the one that we know."""
    return NotTaken(415, Outcome.UNSUPPORTED, message, remedy=remedy)


def too_large(size: str, limit: int) -> NotTaken:
    """More bytes than are read at all."""
    return NotTaken(
        413,
        Outcome.TOO_LARGE,
        f"the request has {size} bytes, and at most {limit} are taken",
        remedy="Send fewer samples in a request (max_samples_per_send), or raise gateway.max_body",
    )


def put_off(waited_s: float) -> NotTaken:
    """There was no room for it."""
    return NotTaken(
        503,
        Outcome.PUT_OFF,
        f"as much as may waits for Kafka already, and {waited_s:g} s have made no room",
        remedy="Send it again later. If this lasts, look at Kafka, or raise gateway.max_in_flight",
    )


def kafka_unavailable(error: StrandlineError) -> NotTaken:
    """Kafka does not have all of it, or has not said so."""
    return NotTaken(503, Outcome.KAFKA_UNAVAILABLE, error.message, remedy="Send it again later, all of it")


def stopping() -> NotTaken:
    """The gateway is about to end."""
    return NotTaken(503, Outcome.STOPPING, "the gateway is being stopped", remedy="Send it again later")


def too_slow() -> NotTaken:
    """The body did not come in time. That may be otherwise next time, so it must not be a 4xx."""
    return NotTaken(503, Outcome.CLIENT_GONE, "the request's body did not come in time", remedy="Send it again")
