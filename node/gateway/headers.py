"""Whether a request is remote write 1.0 in snappy's block format, by its headers. Pure.

What is something else is answered with 415: senders that know several forms try another one then. So does Prometheus
with remote write 2.0, and vmagent with zstd.
"""

import re
from collections.abc import Mapping

from strandline.node.gateway.not_taken import unsupported

_TYPE = "application/x-protobuf"
_MESSAGE = "prometheus.WriteRequest"
_VERSIONS = re.compile(r"0\.1\.[0-9]{1,9}", re.ASCII)
_SHOWN = 60


def check_headers(headers: Mapping[str, str]) -> None:
    """Raises `NotTaken`. A type or a version that is not given counts as right, as it does with Prometheus."""
    kind, _, parameters = headers.get("Content-Type", _TYPE).partition(";")
    if kind.strip().lower() != _TYPE:
        raise unsupported(f"the content type is {_shown(kind)}", remedy=f"Send {_TYPE}, remote write 1.0")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "proto" and value.strip().strip('"') != _MESSAGE:
            raise unsupported(
                f"the message is {_shown(value)}, and only {_MESSAGE} is taken",
                remedy="Send remote write 1.0 (in Prometheus, protobuf_message: prometheus.WriteRequest)",
            )
    encoding = headers.get("Content-Encoding")
    if encoding is None:
        raise unsupported("there is no content encoding", remedy="Send the body as a snappy block and say so")
    if encoding.strip().lower() != "snappy":
        raise unsupported(f"the content encoding is {_shown(encoding)}", remedy="Send the body as a snappy block")
    version = headers.get("X-Prometheus-Remote-Write-Version")
    if version is not None and _VERSIONS.fullmatch(version.strip()) is None:
        raise unsupported(f"the version of remote write is {_shown(version)}", remedy="Send 0.1.0, remote write 1.0")


def _shown(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
