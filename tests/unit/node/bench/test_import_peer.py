"""Sending the files of `strandline bench import` to VictoriaMetrics' import API, and the results as a table."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.jobs.importing.spec import Format
from strandline.node.bench.import_files import FILE_FORMATS, ImportLoad, write_file
from strandline.node.bench.import_peer import SentFile, import_peer, send_file
from strandline.node.bench.import_report import FormatFigures, ImportBenchReport, PeerImport
from strandline.node.bench.machine import Machine
from strandline.node.bench.peer import PeerRefused
from strandline.node.output import Table

pytestmark = pytest.mark.unit

NOW = 1_800_000_000_000
LOAD = ImportLoad(6, 3)


class Peer(ThreadingHTTPServer):
    """Counts the received lines without comments, as VictoriaMetrics counts rows."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.rows, self.loses = 0, 0
        self.requests: list[tuple[str, bytes]] = []


class Handler(BaseHTTPRequestHandler):
    server: Peer

    def do_GET(self) -> None:
        self._answer(
            f'vm_rows_inserted_total{{type="csvimport"}} {self.server.rows}\nvm_rows{{type="indexdb"}} 7\n'.encode()
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, body))
        self.server.rows += sum(not line.startswith(b"#") for line in body.splitlines()) - self.server.loses
        self._answer(b"")

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def peer() -> Iterator[Peer]:
    with Peer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def send_files(peer: Peer, folder: Path, format_: Format) -> PeerImport:
    clock = SystemClock()
    file = SentFile(write_file(folder / "file", format_, LOAD, "cpu", NOW), format_, "cpu")
    with import_peer(folder, f"http://127.0.0.1:{peer.server_port}", clock) as server:
        assert server is not None
        return send_file(server, file, LOAD.samples, clock)


def test_each_format_is_sent_to_its_own_path_and_only_the_header_is_left_out(peer: Peer, tmp_path: Path) -> None:
    for format_ in FILE_FORMATS:
        figures = send_files(peer, tmp_path, format_)
        # The server's process is unknown.
        assert figures.seconds > 0
        assert figures.cpu_seconds is None
    (csv_path, csv), (metrics_path, metrics), (json_path, lines) = peer.requests
    assert csv_path == "/api/v1/import/csv?format=1:time:unix_ms,2:label:host,3:label:dc,4:metric:cpu"
    assert csv.splitlines()[0] == f"{NOW - 30_000},host-0,dc0,0.0".encode()
    assert metrics_path == "/api/v1/import/prometheus"
    assert metrics.splitlines()[1] == f'cpu{{host="host-0",dc="dc0"}} 0.0 {NOW // 1000 - 30}.000'.encode()
    assert json_path == "/api/v1/import"
    assert json.loads(lines.splitlines()[0])["metric"] == {"__name__": "cpu", "host": "host-0", "dc": "dc0"}


def test_a_peer_that_does_not_accept_all_samples_is_refused(peer: Peer, tmp_path: Path) -> None:
    peer.loses = 2
    with pytest.raises(PeerRefused, match="accepted 4 of 6 samples"):
        send_files(peer, tmp_path, Format.CSV)


def test_results_have_shards_and_peer_if_they_were_measured() -> None:
    with_all = FormatFigures("csv", 10 << 20, 1_000_000, 2.0, 0.5, 7_000_000, 0.5, PeerImport(4.0, 1.0, 2.0))
    alone = FormatFigures("jsonl", 10 << 20, 1_000_000, 2.0, 0.5, 7_000_000)
    assert (with_all.samples_per_cpu_second, with_all.end_to_end_per_cpu_second) == (2_000_000, 1_000_000)
    assert with_all.peer_per_cpu_second == 500_000
    assert (alone.end_to_end_per_cpu_second, alone.peer_per_cpu_second) == (None, None)
    blocks = list(ImportBenchReport(LOAD, Machine.this(), (with_all, alone), 1.5).blocks())
    table = next(block for block in blocks if isinstance(block, Table))
    assert table.rows[0][2:7] == ("2,000,000", "1,000,000", "500,000", "500,000", "250,000")
    assert table.rows[1][3:5] == ("-", "-")
    assert "1.50 s" in str(blocks[-1])
