"""A path, who may call it, and what answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from aiohttp import web

from strandline.node.http.quick_handlers import QuickHandler

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Access(StrEnum):
    """What a caller must be allowed to do. OPEN asks for nothing. Whoever may do admin verbs may read, too."""

    OPEN = "open"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Route:
    """One path, in aiohttp's notation (`/api/v1/label/{name}/values`). `quick` is asked first, if there is one."""

    methods: tuple[str, ...]
    path: str
    handler: Handler
    access: Access
    quick: QuickHandler | None = None
