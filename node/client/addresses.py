"""The address of a node: from a URL, or from the settings of the node itself."""

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
    """An address to which no request can be sent."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """Host, port, whether it uses TLS, and the path before `/api/v1`."""

    host: str
    port: int
    tls: bool = False
    prefix: str = ""

    @property
    def url(self) -> str:
        """As a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{self.prefix}"


def parse_url(written: str) -> NodeAddress:
    """The address in a URL. Raises `BadAddress`, whose message never contains a password."""
    try:
        parts = urlsplit(written)
        port = parts.port
    except ValueError as error:
        raise BadAddress(f"the URL is invalid: {error}", remedy=_EXAMPLE) from None
    if parts.username is not None or parts.password is not None:
        raise BadAddress("the URL contains a user or a password", remedy="Use --token-file instead")
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
        return "has no host"
    if parts.query or parts.fragment:
        return "has more than a host, a port and a path"
    return "has characters that are not allowed in URLs" if not written.isascii() or not written.isprintable() else ""


def address_of(settings: "HttpSettings") -> NodeAddress:
    """The address of the settings' node, as seen from its own machine. Raises `BadAddress` for port 0."""
    host, _, port = settings.node_address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if int(port) == 0:
        raise BadAddress(
            f"http.node_address is {settings.node_address}: the node uses any free port",
            remedy="Give its address with --url; it is in the node's log",
        )
    if host != "localhost" and (address := ipaddress.ip_address(host)).is_unspecified:
        # The node listens on all addresses, including loopback.
        host = "127.0.0.1" if address.version == 4 else "::1"
    return NodeAddress(host, int(port), settings.tls_certificate_file is not None)
