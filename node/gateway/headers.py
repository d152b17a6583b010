"""Checks by its headers whether a request is remote write 1.0 in snappy's block format. Pure.

Other formats are answered with 415. Senders that support several formats may then use another one, as vmagent does
with zstd. Prometheus does not: it drops requests of remote write 2.0, which therefore have a separate outcome.
"""

import re
from collections.abc import Mapping

from strandline.node.gateway.rejections import remote_write_2, unsupported

_TYPE = "application/x-protobuf"
_MESSAGE, _MESSAGES_2 = "prometheus.WriteRequest", "io.prometheus.write.v2."
_VERSIONS = re.compile(r"0\.1\.[0-9]{1,9}", re.ASCII)
_MAX_TEXT = 60


def check_headers(headers: Mapping[str, str]) -> None:
    """Raises `WriteRejected`. A missing content type or version is accepted, as in Prometheus."""
    kind, _, parameters = headers.get("Content-Type", _TYPE).partition(";")
    if kind.strip().lower() != _TYPE:
        raise unsupported(f"the content type is {_shown(kind)}", remedy=f"Send {_TYPE}, remote write 1.0")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "proto" and (message := value.strip().strip('"')) != _MESSAGE:
            if message.startswith(_MESSAGES_2):
                raise remote_write_2()
            raise unsupported(f"the message is {_shown(value)}", remedy=f"Send {_MESSAGE}, remote write 1.0")
    version = headers.get("X-Prometheus-Remote-Write-Version", "").strip()
    if version.startswith("2."):
        raise remote_write_2()
    encoding = headers.get("Content-Encoding")
    if encoding is None:
        raise unsupported(
            "there is no content encoding", remedy="Send the body as a snappy block, with Content-Encoding: snappy"
        )
    if encoding.strip().lower() != "snappy":
        raise unsupported(f"the content encoding is {_shown(encoding)}", remedy="Send the body as a snappy block")
    if version and _VERSIONS.fullmatch(version) is None:
        raise unsupported(f"the version of remote write is {_shown(version)}", remedy="Send 0.1.0, remote write 1.0")


def _shown(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}...")
