"""What browsers can be tricked into, where no token is needed.

A page of another site may have its name resolved to this machine (DNS rebinding) and then read what it likes; or it
may post to this machine without reading the answer. The first is known by the name in `Host`, the second by `Origin`.
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from strandline.node.http.errors import Refused

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def check_origin(method: str, headers: Mapping[str, str], listening_host: str, *, guarded: bool) -> None:
    """Raises `Refused` for what another site's page has sent. Without a token, the machine must also be called by a
    name that can only mean itself.
    """
    host = _host_of(headers.get("Host", ""))
    if not guarded and host not in ("", listening_host) and not _is_loopback(host):
        raise Refused(
            403,
            "forbidden",
            f"the request is meant for a host {host[:100]!r}, and without a token only this machine's own names are "
            "answered",
            remedy="Use localhost or the address that is listened on; for other names set a token",
        )
    origin = headers.get("Origin")
    if origin is None or method in _SAFE:
        return
    if origin == "null" or _site_of(origin) != host:
        raise Refused(403, "forbidden", "the request comes from a page of another site")


def _host_of(netloc: str) -> str:
    """Without the port, and in lower case; an IPv6 address without its brackets."""
    netloc = netloc.strip().lower()
    if netloc.startswith("["):
        return netloc[1:].partition("]")[0]
    return netloc.partition(":")[0].removesuffix(".")


def _site_of(origin: str) -> str | None:
    try:
        return _host_of(urlsplit(origin).netloc)
    except ValueError:
        return None  # Half of an IPv6 address, for one.


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
