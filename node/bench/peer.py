"""The same bodies sent to a peer, to compare what a sample costs there."""

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
    """The peer did not take a body."""


class Peer:
    """A server that takes remote-write requests, and its process."""

    def __init__(self, url: str, pid: int) -> None:
        self._url, self._pid = url, pid

    def cpu_seconds(self) -> float:
        """How much CPU time its process has used, its threads included."""
        try:
            fields = Path(f"/proc/{self._pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            raise PeerRefused(f"there is no process {self._pid}", remedy="Give the peer's process id") from None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def send(self, bodies: Iterable[bytes]) -> None:
        """Send bodies one after the other, over one connection."""
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
                        remedy="Give the URL that takes remote-write requests, such as http://localhost:8428/api/v1/write",
                    )
        except (OSError, http.client.HTTPException) as error:
            raise PeerRefused(f"{self._url} does not answer: {error!r}", remedy="Check that the peer runs") from error
        finally:
            connection.close()
