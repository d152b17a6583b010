"""Responses of handlers: a complete body, or blocks that are made while the client receives them."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

import orjson

Fields = tuple[tuple[str, str], ...]
"""Header fields of an answer. Hashable, because rendered heads are cached by them."""
JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
COMMON_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Header fields of every answer, unless its handler overrides them."""
# More than the combinations of status, content type and header fields that are in use.
_MAX_HEADS = 256
_REASONS = {status.value: status.phrase for status in HTTPStatus}


@dataclass(slots=True)
class Response:
    """A complete answer. Not frozen: `frozen=True` doubles the construction cost."""

    body: bytes = b""
    status: int = 200
    content_type: str = JSON
    headers: Fields = ()
    close: bool = False
    """Whether to close the connection after it."""
    reserved: int = 0
    """How many bytes of the body are already counted as memory of answers."""

    @classmethod
    def text(cls, text: str, *, status: int = 200, headers: Fields = ()) -> "Response":
        """Plain text."""
        return cls(text.encode(), status, TEXT, headers)

    @classmethod
    def success(cls, data: Any, *, status: int = 200) -> "Response":
        """Data in the envelope of Prometheus' API."""
        return cls(orjson.dumps({"status": "success", "data": data}), status)


@dataclass(slots=True)
class StreamedResponse:
    """An answer in blocks. The next block is made when the client has received the last one. If that raises, the
    connection is closed without the end of the body, so that the client does not take the answer for a complete one.
    """

    blocks: AsyncGenerator[bytes, None]
    content_type: str = JSON
    headers: Fields = ()
    status: int = 200
    close: bool = False
    reserved: int = 0
    """How many bytes of a block are already counted as memory of answers."""


AnyResponse = Response | StreamedResponse


class Heads:
    """Renders and caches the heads of answers. For one event loop."""

    def __init__(self) -> None:
        self._rendered: dict[tuple[int, str, Fields], bytes] = {}
        self._second, self._date = -1, b""

    def render(self, response: AnyResponse, framing: bytes, now_ms: int) -> bytes:
        """The head of an answer. `framing` has the header lines that define the end of the body."""
        key = response.status, response.content_type, response.headers
        head = self._rendered.get(key)
        if head is None:
            if len(self._rendered) >= _MAX_HEADS:
                self._rendered.clear()
            head = self._rendered[key] = _rendered(*key)
        return b"%sDate: %s\r\n%s\r\n" % (head, self._date_at(now_ms // 1000), framing)

    def _date_at(self, second: int) -> bytes:
        if second != self._second:
            self._second, self._date = second, formatdate(second, usegmt=True).encode()
        return self._date


def _rendered(status: int, content_type: str, headers: Fields) -> bytes:
    given = {name.lower() for name, _ in headers}
    fields = [f"{name}: {value}" for name, value in headers]
    fields += [f"{name}: {value}" for name, value in COMMON_HEADERS.items() if name.lower() not in given]
    if content_type and status not in (204, 304):
        fields.append(f"Content-Type: {content_type}")
    fields.append("Server: strandline")
    if any("\r" in one or "\n" in one for one in fields):
        raise ValueError("a header field of an answer has a line break in it")
    reason = _REASONS.get(status, "")
    lines = "".join(f"{one}\r\n" for one in fields)
    return f"HTTP/1.1 {status} {reason}\r\n{lines}".encode("latin-1", "replace")
