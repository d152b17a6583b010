"""Errors as Prometheus answers them: a status code, a kind of error, and a text with a remedy.

All errors of handlers are converted here, so that the same error always has the same answer. The answer to an
unexpected error has a short id, by which the log has the details.
"""

import secrets
from dataclasses import dataclass, replace

import orjson
import structlog

from strandline.errors import Fatal, Retryable, StrandlineError
from strandline.index.matchers import InvalidMatcher
from strandline.index.pylucene.failures import RegexTooCostly
from strandline.index.selectors import InvalidSelector
from strandline.node.http.responses import Fields, Response
from strandline.node.masking import SecretMask
from strandline.node.query.answer_memory import AnswerTooLarge
from strandline.node.query.queries import QueryCancelled, QueryTimedOut, QueryTooLarge, QueryUnavailable
from strandline.promql.errors import EvaluationError, ParseError
from strandline.promql.go_text import as_utf8

log = structlog.get_logger(__name__)

# The status of nginx and Prometheus for a client that has closed the connection.
CLIENT_CLOSED_REQUEST = 499
QUERY_TIMED_OUT = 503


class Refused(Fatal):
    """A refused request, with the status and the kind of error to answer."""

    def __init__(self, status: int, kind: str, message: str, *, remedy: str = "", headers: Fields = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.status, self.kind, self.headers = status, kind, headers


class BadParameter(Refused):
    """An invalid parameter or body."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(400, "bad_data", message, remedy=remedy)


class SlowRequest(Refused):
    """A client that takes too long to send its request."""

    def __init__(self, seconds: float) -> None:
        super().__init__(408, "timeout", f"the request did not arrive within {seconds:g} s")


@dataclass(frozen=True, slots=True)
class Fault:
    """The error to answer."""

    status: int
    kind: str
    text: str
    headers: Fields = ()

    def masked(self, mask: SecretMask) -> "Fault":
        """Without secrets: an error may quote a driver's message."""
        return replace(self, text=mask.text(self.text))

    def response(self) -> Response:
        """In Prometheus' envelope."""
        body = {"status": "error", "errorType": self.kind, "error": as_utf8(self.text)}
        return Response(orjson.dumps(body), self.status, headers=self.headers)


# The first match counts.
_BY_ERROR: tuple[tuple[type[StrandlineError], int, str], ...] = (
    (InvalidSelector, 400, "bad_data"),
    (InvalidMatcher, 400, "bad_data"),
    (ParseError, 400, "bad_data"),
    (EvaluationError, 422, "execution"),
    (RegexTooCostly, 422, "execution"),
    (QueryTooLarge, 422, "execution"),
    (AnswerTooLarge, 422, "execution"),
    (QueryTimedOut, QUERY_TIMED_OUT, "timeout"),
    (QueryCancelled, CLIENT_CLOSED_REQUEST, "canceled"),
    (QueryUnavailable, 503, "unavailable"),
    (Retryable, 503, "unavailable"),
    (StrandlineError, 500, "internal"),
)


def fault_of(error: StrandlineError) -> Fault:
    """The fault to answer for one of Strandline's errors."""
    if isinstance(error, Refused):
        return Fault(error.status, error.kind, str(error), error.headers)
    status, kind = next((status, kind) for known, status, kind in _BY_ERROR if isinstance(error, known))
    return Fault(status, kind, str(error))


def unexpected(error: BaseException, **where: object) -> Fault:
    """The fault to answer for an unexpected error. Logs it, with the id that the answer names."""
    error_id = secrets.token_hex(4)
    log.error("request failed unexpectedly", error_id=error_id, **where, exc_info=error)
    return Fault(500, "internal", f"unexpected error; the log has details under the id {error_id}")
