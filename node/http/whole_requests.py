"""Requests that came whole and in one piece, as most do, read in a few microseconds.

Only what is beyond doubt is read here. Whatever would have to be interpreted, and whatever is no HTTP at all, is left
to aiohttp: it knows what to make of it, or how to refuse it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from strandline.node.http.encodings import accepts_gzip

# In bytes, of all of it.
_LONGEST = 16 << 10
# Possessive, so that nothing takes longer to read than its length.
_LINE = re.compile(r"([A-Z]{1,20}+) (/[!\"$->@-~]*+)(?:\?([!\"$-~]*+))? HTTP/1\.1")
_FIELDS = re.compile(rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]++:[ -~]*+\r\n){1,100}+)\r\n")
# What says that there is more to a request than its head and as many bytes as it says, or to do behind it.
_NOT_PLAIN = frozenset(
    {
        "transfer-encoding",
        "upgrade",
        "expect",
        "http2-settings",
        "trailer",
        "te",
        "proxy-connection",
        "sec-websocket-key1",
    }
)


class Headers(Mapping[str, str]):
    """Header fields, by names however they are written. None of them comes twice."""

    __slots__ = ("_fields", "accept_gzip", "cleared_for")

    def __init__(self, fields: dict[str, str]) -> None:
        """By names in lower case."""
        self._fields = fields
        self.accept_gzip = accepts_gzip(fields.get("accept-encoding", ""))
        self.cleared_for: object = None
        """What a request with these fields was last allowed to do, for whoever decides on it."""

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


@dataclass(slots=True)
class WholeRequest:
    """A request, of which nothing was decoded but the lines."""

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes


class RequestReader:
    """Reads the requests of one connection. Clients send the same header fields with each, which are read once."""

    __slots__ = ("headers", "written")

    def __init__(self) -> None:
        self.written: bytes | None = None
        """The header fields of the last request as they came, if it had no body."""
        self.headers = Headers({})
        """What they say."""

    def read(self, data: bytes) -> WholeRequest | None:
        """The one request that these bytes are; None if they are more or less than one, or not a plain one."""
        if len(data) > _LONGEST:
            return None
        first, _, rest = data.partition(b"\r\n")
        # Every byte is a character like this, and none but those of ASCII are taken.
        line = _LINE.fullmatch(first.decode("latin-1"))
        if line is None:
            return None
        body = b""
        if rest != self.written:
            fields = _FIELDS.match(rest)
            headers = _plain_headers(fields[1]) if fields is not None else None
            if fields is None or headers is None:
                return None
            body = rest[fields.end() :]
            if headers.get("content-length", "0") != str(len(body)):
                return None
            self.written, self.headers = (None if body else rest), headers
        method, path, query = line.groups("")
        return WholeRequest(method, path, query, self.headers, body)


def _plain_headers(written: bytes) -> Headers | None:
    """What header lines say; None if a request with them is not a plain one."""
    lines = written[:-2].decode("ascii").split("\r\n")
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        fields[name.lower()] = value.strip()
    if len(fields) != len(lines) or not _NOT_PLAIN.isdisjoint(fields) or not fields.get("host"):
        return None
    if fields.get("connection", "keep-alive").lower() != "keep-alive":
        return None
    return Headers(fields)
