"""Where a node is asked: from a URL, or from the settings of the node itself."""

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from strandline.errors import ExitCode, Fatal

if TYPE_CHECKING:
    from strandline.node.settings.http_sections import HttpSettings

_PORTS = {"http": 80, "https": 443}
_EXAMPLE = "Give one such as http://127.0.0.1:9460 or https://node-1.example.com:9460"


class BadAddress(Fatal):
    """An address that nothing can be asked at."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """A host, its port, whether TLS is spoken there, and what stands before `/api/v1` in the path."""

    host: str
    port: int
    tls: bool = False
    prefix: str = ""

    @property
    def url(self) -> str:
        """For people, and to copy."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{self.prefix}"


def parse_url(written: str) -> NodeAddress:
    """The address that a URL names. Raises `BadAddress`, which never repeats a password."""
    try:
        parts = urlsplit(written)
        port = parts.port
    except ValueError as error:
        raise BadAddress(f"the URL is not one: {error}", remedy=_EXAMPLE) from None
    if parts.username is not None or parts.password is not None:
        raise BadAddress("the URL names a user or a password", remedy="Give a token by --token-file instead")
    fault = _fault(written, parts)
    if fault:
        raise BadAddress(f"{written!r} {fault}", remedy=_EXAMPLE)
    return NodeAddress(
        parts.hostname or "", port or _PORTS[parts.scheme], parts.scheme == "https", parts.path.rstrip("/")
    )


def _fault(written: str, parts: SplitResult) -> str:
    if parts.scheme not in _PORTS:
        return "does not begin with http:// or https://"
    if not parts.hostname:
        return "names no host"
    if parts.query or parts.fragment:
        return "has more than a host, a port and a path"
    return "has characters that no URL has" if not written.isascii() or not written.isprintable() else ""


def address_of(settings: "HttpSettings") -> NodeAddress:
    """Where the node of these settings listens, as seen from its own machine. Raises `BadAddress` for port 0."""
    host, _, port = settings.node_address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if int(port) == 0:
        raise BadAddress(
            f"http.node_address is {settings.node_address}: the node takes any free port",
            remedy="Give its address by --url; the node's log says it",
        )
    if host != "localhost" and (address := ipaddress.ip_address(host)).is_unspecified:
        # It listens everywhere, and so here.
        host = "127.0.0.1" if address.version == 4 else "::1"
    return NodeAddress(host, int(port), settings.tls_certificate_file is not None)
