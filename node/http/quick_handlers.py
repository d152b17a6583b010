"""What may answer a request without aiohttp."""

from collections.abc import Callable
from typing import Protocol

from strandline.node.http.whole import Whole
from strandline.node.http.whole_requests import WholeRequest


class UnderWay(Protocol):
    """An answer that is being worked on. It belongs to one event loop."""

    def when_here(self, call: Callable[[], None]) -> None:
        """Call this once, later, when `take` may be called."""
        ...

    def take(self) -> Whole | None:
        """The answer. None if it is one for the ordinary handler, because it is long or has failed: the handler finds
        this by the request, and goes on with it.
        """
        ...

    def abandon(self) -> None:
        """Nobody wants it any more. If it is over that means nothing."""
        ...


QuickHandler = Callable[[WholeRequest, str], Whole | UnderWay | None]
"""Gets a request that may be made, and the text that stands in its path for a parameter. It must not wait. None, and
`Refused`, leave the request to the ordinary handler.
"""
