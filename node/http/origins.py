"""Protects against attacks through browsers, where no token is required.

A page of another site may have its name resolved to this machine (DNS rebinding) and then read answers, or it may post
to this machine without reading the answer (CSRF). The first is detected by `Host`, the second by `Origin`.
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from strandline.node.http.errors import Refused

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def check_origin(method: str, headers: Mapping[str, str], listening_host: str, *, has_token: bool) -> None:
    """Raises `Refused` for a request of another site's page. Without a token, `Host` must also be a name that always
    means this machine.
    """
    host = _host_of(headers.get("Host", ""))
    if not has_token and host not in ("", listening_host) and not _is_loopback(host):
        raise Refused(
            403,
            "forbidden",
            f"the request is for the host {host[:100]!r}; without a token, only this machine's own names are accepted",
            remedy="Use localhost or the listen address; for other names set a token",
        )
    origin = headers.get("Origin")
    if origin is None or method in _SAFE:
        return
    if origin == "null" or _site_of(origin) != host:
        raise Refused(403, "forbidden", "the request comes from a page of another site")


def _host_of(netloc: str) -> str:
    """The host in lower case, without port; an IPv6 address without brackets."""
    netloc = netloc.strip().lower()
    if netloc.startswith("["):
        return netloc[1:].partition("]")[0]
    return netloc.partition(":")[0].removesuffix(".")


def _site_of(origin: str) -> str | None:
    try:
        return _host_of(urlsplit(origin).netloc)
    except ValueError:
        return None  # For example, an incomplete IPv6 address.


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
