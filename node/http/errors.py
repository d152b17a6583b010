"""Errors as Prometheus answers them: a status code, a kind of error, and a text that says what to do.

All that goes wrong in a handler comes through here, so that no two parts answer the same fault differently. What
nobody foresaw is answered with a short id that stands in the log, too, and with nothing else.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import orjson
import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware

from strandline.errors import Fatal, Retryable, StrandlineError
from strandline.index.matchers import InvalidMatcher
from strandline.index.pylucene.failures import RegexTooCostly
from strandline.index.selectors import InvalidSelector
from strandline.node.http.marks import ANSWER_BEGUN
from strandline.node.masking import SecretMask
from strandline.node.query.queries import QueryCancelled, QueryTimedOut, QueryTooLarge, QueryUnavailable

log = structlog.get_logger(__name__)

# What nginx writes down for a client that did not wait, and Prometheus answers. Nobody reads it, but the log.
CLIENT_CLOSED_REQUEST = 499


class Refused(Fatal):
    """A request that a handler refuses, with the status and the kind of error to answer."""

    def __init__(
        self, status: int, kind: str, message: str, *, remedy: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.status, self.kind, self.headers = status, kind, dict(headers or {})


class BadParameter(Refused):
    """A parameter, or a body, that means nothing."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(400, "bad_data", message, remedy=remedy)


class SlowRequest(Refused):
    """A client that takes too long to send its request."""

    def __init__(self, seconds: float) -> None:
        super().__init__(408, "timeout", f"the request did not arrive within {seconds:g} s")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is answered instead of data."""

    status: int
    kind: str
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> web.Response:
        """In Prometheus' envelope."""
        body = {"status": "error", "errorType": self.kind, "error": self.text}
        return web.Response(
            status=self.status, body=orjson.dumps(body), content_type="application/json", headers=self.headers
        )


_BY_STATUS = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    413: "too_large",
}
# The first that fits counts.
_BY_ERROR: tuple[tuple[type[StrandlineError], int, str], ...] = (
    (InvalidSelector, 400, "bad_data"),
    (InvalidMatcher, 400, "bad_data"),
    (RegexTooCostly, 422, "execution"),
    (QueryTooLarge, 422, "execution"),
    (QueryTimedOut, 503, "timeout"),
    (QueryCancelled, CLIENT_CLOSED_REQUEST, "canceled"),
    (QueryUnavailable, 503, "unavailable"),
    (Retryable, 503, "unavailable"),
    (StrandlineError, 500, "internal"),
)


def fault_of(error: StrandlineError) -> Fault:
    """What to answer for one of our own errors."""
    if isinstance(error, Refused):
        return Fault(error.status, error.kind, str(error), error.headers)
    status, kind = next((status, kind) for known, status, kind in _BY_ERROR if isinstance(error, known))
    return Fault(status, kind, str(error))


def fault_of_exception(error: web.HTTPException) -> Fault:
    """The same for an error of the server itself, such as a path that there is not."""
    kind = _BY_STATUS.get(error.status, "bad_data" if error.status < 500 else "internal")
    text = error.reason
    headers = {name: value for name, value in error.headers.items() if name in ("Allow", "Location")}
    match error:
        case web.HTTPNotFound():
            text = "there is nothing at this path"
        case web.HTTPMethodNotAllowed():
            text = f"{error.method} is not answered at this path. Use {' or '.join(sorted(error.allowed_methods))}"
        case web.HTTPRequestEntityTooLarge():
            text = "the request's body is too large"
    return Fault(error.status, kind, text, headers)


def unexpected(error: BaseException, **where: object) -> Fault:
    """What to answer for an error that nobody foresaw. Logs it, under the id that the answer names."""
    error_id = secrets.token_hex(4)
    log.error("request failed unexpectedly", error_id=error_id, **where, exc_info=error)
    return Fault(500, "internal", f"an unexpected error, which the log tells more about under the id {error_id}")


def errors_answered(mask: SecretMask) -> Middleware:
    """The middleware that answers all of these. Texts pass the mask: an error may quote what a driver said."""

    @web.middleware
    async def answered(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        where = {"method": request.method, "path": request.path}
        try:
            return await handler(request)
        except web.HTTPException as error:
            if error.status < 400:
                raise
            fault = fault_of_exception(error)
        except StrandlineError as error:
            fault = fault_of(error)
            if fault.status >= 500:
                log.warning("request failed", **where, status=fault.status, reason=mask.text(fault.text))
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer and the log the rest
            fault = unexpected(error, **where)
        if ANSWER_BEGUN in request:
            # Half of an answer is out, and nothing can be said any more but that it is not whole.
            raise ConnectionAbortedError(fault.text)
        response = Fault(fault.status, fault.kind, mask.text(fault.text), fault.headers).response()
        if not request.content.is_eof():
            # Whatever the client still sends is not wanted.
            response.force_close()
        return response

    return answered
