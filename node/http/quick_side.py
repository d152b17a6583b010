"""Requests that are answered without aiohttp: what a route needs for that, and what is checked and counted.

Whatever is not as simple as that is declined, and comes to the route's ordinary handler: the quick side never answers
with an error, so that each error is told in one place.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import structlog

from strandline.clock import Clock
from strandline.node.http.errors import Refused
from strandline.node.http.express import Express
from strandline.node.http.quick_handlers import UnderWay
from strandline.node.http.routes import Route
from strandline.node.http.whole import HttpDates, Whole
from strandline.node.http.whole_requests import WholeRequest

log = structlog.get_logger(__name__)

# What stands in a path for a parameter of it: text that means itself.
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9_.:-]+")
_PATTERN = re.compile(r"(.*)\{[a-z]+\}(.*)")

Check = Callable[[WholeRequest, Route], None]
"""Raises `Refused` if a request may not be made."""


class Counts(Protocol):
    """Who counts requests."""

    def began(self) -> None: ...

    def over(self) -> None: ...

    def answered(self, handler: str, code: int, seconds: float) -> None:
        """It is over, and was answered."""
        ...


@dataclass(slots=True)
class Begun:
    """A request on the quick side, the moment when it came, and its answer or who works on that."""

    request: WholeRequest
    route: Route
    at: float
    answer: Whole | UnderWay


class QuickSide:
    """The quick side of a server. It belongs to one event loop."""

    def __init__(
        self,
        routes: Iterable[Route],
        check: Check,
        clock: Clock,
        counts: Counts | None = None,
        *,
        express: Express | None = None,
        clearance: Callable[[], object] = object,
    ) -> None:
        """`express` is asked before all, for requests whose header fields were cleared for reading: `clearance` tells
        what such are marked with.
        """
        self._check, self._clock, self._counts = check, clock, counts
        self.express, self.clearance = express, clearance
        self._dates = HttpDates()
        self._exact: dict[str, Route] = {}
        self._with_name: list[tuple[str, str, Route]] = []
        for route in routes:
            if route.quick is None:
                continue
            if (pattern := _PATTERN.fullmatch(route.path)) is not None:
                self._with_name.append((pattern[1], pattern[2], route))
            else:
                self._exact[route.path] = route

    def begin(self, request: WholeRequest) -> Begun | None:
        """Begin to answer; None if the ordinary handler has to."""
        route, name = self._exact.get(request.path), ""
        if route is None:
            route, name = self._named(request.path)
        if route is None or route.quick is None or request.method not in route.methods:
            return None
        at = self._clock.monotonic()
        try:
            self._check(request, route)
            answer = route.quick(request, name)
        except Refused:
            return None
        except Exception:
            # Whatever it is, the client gets an answer.
            log.exception("the quick side failed", path=route.path)
            return None
        if answer is None:
            return None
        if self._counts is not None:
            self._counts.began()
        return Begun(request, route, at, answer)

    def raw(self, whole: Whole) -> bytes:
        """An answer as bytes."""
        return whole.raw(self._dates.at(self._clock.now_ms()))

    def answered(self, begun: Begun) -> float:
        """It was answered, after so many seconds."""
        seconds = self._clock.monotonic() - begun.at
        if self._counts is not None:
            self._counts.answered(begun.route.path, 200, seconds)
        return seconds

    def passed_on(self) -> None:
        """One was left to the ordinary handler, or its client went away."""
        if self._counts is not None:
            self._counts.over()

    def _named(self, path: str) -> tuple[Route | None, str]:
        for before, behind, route in self._with_name:
            if path.startswith(before) and path.endswith(behind):
                name = path[len(before) : len(path) - len(behind)]
                if _PLAIN_TEXT.fullmatch(name) is not None:
                    return route, name
        return None, ""
