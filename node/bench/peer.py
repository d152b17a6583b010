"""Sends remote-write requests to a peer, and reads its CPU time, for comparison."""

import http.client
import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from strandline.errors import Fatal

_HEADERS = {
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}


class PeerRefused(Fatal):
    """The peer did not accept a request."""


class Peer:
    """A server that accepts remote-write requests, and its process."""

    def __init__(self, url: str, pid: int) -> None:
        self._url, self._pid = url, pid

    def cpu_seconds(self) -> float:
        """The CPU time of its process, including all threads."""
        try:
            fields = Path(f"/proc/{self._pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            raise PeerRefused(f"there is no process {self._pid}", remedy="Pass the peer's process id") from None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def send(self, bodies: Iterable[bytes]) -> None:
        """Send requests sequentially over one connection."""
        where = urlsplit(self._url)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
        path = where.path + (f"?{where.query}" if where.query else "")
        try:
            for body in bodies:
                connection.request("POST", path, body, _HEADERS)
                answer = connection.getresponse()
                text = answer.read()
                if answer.status >= 300:
                    raise PeerRefused(
                        f"{self._url} answered {answer.status}: {text[:200].decode(errors='replace')}",
                        remedy="Pass the URL for remote-write requests, such as http://localhost:8428/api/v1/write",
                    )
        except (OSError, http.client.HTTPException) as error:
            raise PeerRefused(f"{self._url} does not answer: {error!r}", remedy="Check that the peer runs") from error
        finally:
            connection.close()
