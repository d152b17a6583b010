"""Requests that need so little that they are passed on as bytes, and their answers passed back."""

from typing import Protocol

from strandline.node.http.turns import Turn
from strandline.node.http.whole import Whole
from strandline.node.http.whole_requests import Headers


class ExpressClient(Protocol):
    """A connection that has sent a request."""

    def cleared_fields(self, data: bytes, line_end: int) -> Headers | None:
        """The header fields of a request whose first line ends there, if such fields were looked at before and allow
        their sender to read.
        """
        ...

    def express_answered(self, whole: Whole, seconds: float) -> None:
        """The answer, and how long it took."""
        ...

    def express_declined(self) -> None:
        """The request has to be answered like any other."""
        ...


class Express(Protocol):
    """Who answers such requests. It belongs to one event loop."""

    def begin(self, data: bytes, client: ExpressClient) -> Turn | None:
        """Begin to answer a request that may be one; None if it is none, or not now. The client is told later."""
        ...
