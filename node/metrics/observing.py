"""The middleware that counts requests."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from strandline.clock import Clock
from strandline.node.http.connections import begun_of
from strandline.node.metrics.front_figures import FrontFigures

OTHER = "other"
"""The handler of what there is no path for."""
# A client that did not wait. Nobody reads the code, but the counts.
_CLIENT_GONE = 499


def observing(figures: FrontFigures, clock: Clock) -> Middleware:
    """Counts requests by the pattern of their path, the code that they were answered with, and the time it took. It
    goes before the one that turns errors into answers, so that it sees the answers.
    """

    @web.middleware
    async def observed(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        begun, code = begun_of(request), 500
        began = clock.monotonic() if begun is None else begun.at
        with figures.in_flight():
            try:
                response = await handler(request)
                code = response.status
            except web.HTTPException as error:
                code = error.status
                raise
            except (asyncio.CancelledError, ConnectionError):
                code = _CLIENT_GONE
                raise
            finally:
                figures.observe(handler_of(request), code, clock.monotonic() - began)
        return response

    return observed


def handler_of(request: web.Request) -> str:
    """The pattern of the request's path, never the path itself: clients could name any number of those."""
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else OTHER
