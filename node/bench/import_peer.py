"""Sends the files to VictoriaMetrics' import API, and measures the CPU time of its process until it is idle again."""

import http.client
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from strandline.clock import Clock
from strandline.jobs.importing.spec import Format
from strandline.node.bench.import_files import header_bytes
from strandline.node.bench.import_report import PeerImport
from strandline.node.bench.peer import PeerRefused
from strandline.node.bench.query_servers import (
    PEER_PROGRAM,
    Server,
    free_port,
    peer_launch,
    peer_program,
    running,
    wait_until_idle,
)

_BLOCK = 1 << 20
_INSERTED = re.compile(r"^vm_rows_inserted_total\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE)
_FLUSH = "/internal/force_flush"
_TIMEOUT_S = 3_600.0


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file with samples of one metric."""

    path: Path
    format: Format
    metric: str


@contextmanager
def import_peer(folder: Path, url: str | None, clock: Clock) -> Iterator[Server | None]:
    """The peer at `url`, or one that is started; None if it is not installed."""
    program = peer_program()
    if url is not None:
        where = urlsplit(url)
        yield Server(PEER_PROGRAM, where.hostname or "", where.port or 80)
    elif program is None:
        yield None
    else:
        home = folder / "peer"
        home.mkdir()
        with running(peer_launch(program, home, free_port()), clock) as server:
            yield server


def send_file(peer: Server, file: SentFile, samples: int, clock: Clock) -> PeerImport:
    """Send a file in one request. CPU time counts until the samples are merged. Raises `PeerRefused`."""
    _wait(peer, clock)
    inserted, cpu_before, began = _inserted(peer), peer.cpu_seconds(), time.perf_counter()
    _post(peer, file)
    seconds, cpu_sent = time.perf_counter() - began, peer.cpu_seconds()
    _request(peer, "GET", _FLUSH)
    _wait(peer, clock)
    cpu_after = peer.cpu_seconds()
    found = _inserted(peer) - inserted
    if found != samples:
        raise PeerRefused(f"{peer.name} accepted {found:,.0f} of {samples:,} samples", remedy="See its log")
    if cpu_before is None or cpu_sent is None or cpu_after is None:
        return PeerImport(seconds, None, None)
    return PeerImport(seconds, cpu_sent - cpu_before, cpu_after - cpu_before)


def _wait(peer: Server, clock: Clock) -> None:
    """Wait until the peer is idle, if its process is known."""
    if peer.pid is not None:
        wait_until_idle(peer.pids, clock)


def _post(peer: Server, file: SentFile) -> None:
    target = {
        Format.CSV: f"/api/v1/import/csv?format=1:time:unix_ms,2:label:host,3:label:dc,4:metric:{file.metric}",
        # Accepts OpenMetrics, with times in seconds.
        Format.OPENMETRICS: "/api/v1/import/prometheus",
        Format.JSONL: "/api/v1/import",
    }[file.format]
    skipped = header_bytes(file.format)
    with file.path.open("rb") as body:
        body.seek(skipped)
        _request(peer, "POST", target, body, {"Content-Length": str(file.path.stat().st_size - skipped)})


def _inserted(peer: Server) -> float:
    return sum(map(float, _INSERTED.findall(_request(peer, "GET", "/metrics"))))


def _request(peer: Server, method: str, target: str, body: object = None, headers: dict[str, str] | None = None) -> str:
    connection = http.client.HTTPConnection(peer.host, peer.port, timeout=_TIMEOUT_S, blocksize=_BLOCK)
    with closing(connection):
        try:
            connection.request(method, target, body, headers or {})  # type: ignore[arg-type]
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            raise PeerRefused(f"the peer does not answer {target}: {error!r}", remedy="Check that it runs") from error
    if answer.status >= http.client.MULTIPLE_CHOICES:
        raise PeerRefused(f"{target} was answered with {answer.status}: {text[:200]}", remedy="See the peer's log")
    return text
