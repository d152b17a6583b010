"""An answer that is sent whole: through aiohttp, or as bytes straight to the connection."""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate

from aiohttp import web

HEADERS: Mapping[str, str] = {
    "Server": "strandline",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""What every answer has, whoever makes it."""


@dataclass(slots=True)
class Whole:
    """A body of JSON that can be sent as often as it is asked for. It is not changed; to say so would take as long as
    the rest of making one.
    """

    body: bytes
    is_compressed: bool

    def response(self) -> web.Response:
        """For aiohttp to send."""
        return web.Response(body=self.body, headers=json_headers(compressed=self.is_compressed))

    def raw(self, date: bytes) -> bytes:
        """The same as it goes over the wire, with the date of now as HTTP writes it."""
        head = _HEAD_COMPRESSED if self.is_compressed else _HEAD
        return b"%sContent-Length: %d\r\nDate: %s\r\n\r\n%s" % (head, len(self.body), date, self.body)


class HttpDates:
    """The date as HTTP writes it, made once a second."""

    def __init__(self) -> None:
        self._second, self._written = -1, b""

    def at(self, milliseconds: int) -> bytes:
        """Of a moment."""
        second = milliseconds // 1000
        if second != self._second:
            self._second, self._written = second, formatdate(second, usegmt=True).encode()
        return self._written


def json_headers(*, compressed: bool) -> dict[str, str]:
    """What says how to read the body of an answer."""
    headers = {"Content-Type": "application/json", "Vary": "Accept-Encoding"}
    return headers | {"Content-Encoding": "gzip"} if compressed else headers


def _head(*, compressed: bool) -> bytes:
    fields = {**json_headers(compressed=compressed), **HEADERS}
    return b"HTTP/1.1 200 OK\r\n" + b"".join(f"{name}: {value}\r\n".encode() for name, value in fields.items())


_HEAD, _HEAD_COMPRESSED = _head(compressed=False), _head(compressed=True)
