"""The servers on which PromQL is measured, with the CPU time and memory of their processes: a node with its Cassandra,
and the peers VictoriaMetrics and Prometheus.
"""

import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from strandline.node.bench.process_memory import peak_resident_bytes, reset_peak, resident_bytes, tree
from strandline.node.bench.query_servers import LOOPBACK, Launch, Server, cpu_seconds

PROMETHEUS = "prometheus"


@dataclass(frozen=True, slots=True)
class MeasuredServer:
    """A server, and further processes that it uses. `is_prometheus`: its answers must be the same as the node's."""

    server: Server
    helpers: tuple[int, ...] = ()
    is_prometheus: bool = True

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.server.name

    @property
    def pids(self) -> tuple[int, ...]:
        """The known processes whose CPU time is counted."""
        return (*self.server.pids, *self.helpers)

    def cpu_seconds(self) -> float | None:
        """The CPU time of all processes so far; None if they are not known."""
        own = self.server.cpu_seconds()
        return None if own is None else own + sum(map(cpu_seconds, self.helpers))


class MemoryPeak:
    """The rise of the memory of a server's processes above its current value. Helpers are not included: Cassandra's
    heap has a fixed size.
    """

    def __init__(self, server: Server) -> None:
        self._processes: dict[int, tuple[str, int]] = {}
        for pid in tree(server.pid) if server.pid is not None else ():
            with suppress(OSError):
                reset_peak(pid)
                self._processes[pid] = (role_of(pid) or server.name, resident_bytes(pid))

    @property
    def idle(self) -> dict[str, int]:
        """The initial memory of each process, by its name."""
        found: dict[str, int] = {}
        for name, idle in self._processes.values():
            found[name] = found.get(name, 0) + idle
        return found

    def rises(self) -> dict[str, int]:
        """The rise of each process above its initial memory."""
        found: dict[str, int] = {}
        for pid, (name, idle) in self._processes.items():
            with suppress(OSError):
                found[name] = found.get(name, 0) + max(0, peak_resident_bytes(pid) - idle)
        return found

    def rise(self) -> int | None:
        """The total rise of all processes; None if they are not known."""
        return sum(self.rises().values()) if self._processes else None


def role_of(pid: int) -> str:
    """The role of a process of a node: "shard 0", "front" or "node"; empty for any other program. Raises `OSError`."""
    words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    command = next((words[at + 1 : at + 3] for at, word in enumerate(words) if word.endswith("/strandline")), [])
    return " ".join(command) if command[:1] == ["shard"] else "".join(command[:1])


def prometheus_launch(program: str, folder: Path, port: int) -> Launch:
    """A Prometheus without scrapes, with the remote-write receiver, and with limits that the queries don't reach."""
    settings = folder / "prometheus.yml"
    settings.write_text("global:\n  scrape_interval: 15s\n", encoding="utf-8")
    command = (
        program,
        f"--config.file={settings}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={LOOPBACK}:{port}",
        "--web.enable-remote-write-receiver",
        "--storage.tsdb.retention.time=30d",
        "--query.max-samples=1000000000",
        "--query.timeout=10m",
    )
    return Launch(PROMETHEUS, command, port, "/-/ready", folder / "log")


def prometheus_program() -> str | None:
    """The path of Prometheus; None if it is not installed."""
    return shutil.which(PROMETHEUS)
