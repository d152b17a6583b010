"""Routes: paths with their methods, access and handlers."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from strandline.node.http.errors import Refused
from strandline.node.http.requests import Request
from strandline.node.http.responses import AnyResponse

Handler = Callable[[Request], Awaitable[AnyResponse]]


class Access(StrEnum):
    """The access that a route requires. OPEN, for health checks, requires none, and is answered even over the
    connection limit. ADMIN includes READ.
    """

    OPEN = "open"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Route:
    """One path. A segment `{name}` stands for any text without a slash (`/api/v1/label/{name}/values`)."""

    methods: tuple[str, ...]
    path: str
    handler: Handler
    access: Access

    def answers(self, method: str) -> bool:
        """Whether the route has a method. GET includes HEAD."""
        return method in self.methods or (method == "HEAD" and "GET" in self.methods)


class Router:
    """Finds the route of a request."""

    def __init__(self, routes: Iterable[Route]) -> None:
        """Raises `ValueError` if two routes have the same path."""
        self._exact: dict[str, Route] = {}
        self._patterns: list[tuple[tuple[str, ...], Route]] = []
        for route in routes:
            if "{" in route.path:
                self._patterns.append((tuple(route.path.split("/")), route))
            elif route.path in self._exact:
                raise ValueError(f"two routes have the path {route.path}")
            else:
                self._exact[route.path] = route

    def find(self, request: Request) -> Route:
        """The route of a request. Sets the request's route path and wildcards. Raises `Refused`."""
        route = self._exact.get(request.path) or self._matching(request)
        if route is None:
            raise Refused(404, "not_found", "there is nothing at this path")
        request.route_path = route.path
        if not route.answers(request.method):
            methods = sorted({*route.methods, *(("HEAD",) if "GET" in route.methods else ())})
            usable = " or ".join(sorted(route.methods))
            raise Refused(
                405,
                "method_not_allowed",
                f"{request.method} is not answered at this path",
                remedy=f"Use {usable}",
                headers=(("Allow", ", ".join(methods)),),
            )
        return route

    def _matching(self, request: Request) -> Route | None:
        segments = request.path.split("/")
        for pattern, route in self._patterns:
            wildcards = _wildcards(pattern, segments)
            if wildcards is not None:
                request.matched(wildcards)
                return route
        return None


def _wildcards(pattern: tuple[str, ...], segments: list[str]) -> Mapping[str, str] | None:
    if len(pattern) != len(segments):
        return None
    found: dict[str, str] = {}
    for expected, segment in zip(pattern, segments, strict=True):
        if expected.startswith("{"):
            if not segment:
                return None
            found[expected[1:-1]] = segment
        elif expected != segment:
            return None
    return found
