"""The servers that PromQL is measured on, with what all their processes take: a node with its Cassandra, and peers:
VictoriaMetrics and Prometheus.
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
    """A server, and other processes that work for its answers. `is_prometheus`: its answers should be the node's."""

    server: Server
    helpers: tuple[int, ...] = ()
    is_prometheus: bool = True

    @property
    def name(self) -> str:
        """As reports call it."""
        return self.server.name

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes whose CPU time counts, as far as they are known."""
        return (*self.server.pids, *self.helpers)

    def cpu_seconds(self) -> float | None:
        """What all of them have used so far; None if it is not known which processes those are."""
        own = self.server.cpu_seconds()
        return None if own is None else own + sum(map(cpu_seconds, self.helpers))


class MemoryPeak:
    """How far the processes of a server rise above what they take now. Helpers don't count: Cassandra's heap has a
    fixed size.
    """

    def __init__(self, server: Server) -> None:
        self._processes: dict[int, tuple[str, int]] = {}
        for pid in tree(server.pid) if server.pid is not None else ():
            with suppress(OSError):
                reset_peak(pid)
                self._processes[pid] = (role_of(pid) or server.name, resident_bytes(pid))

    @property
    def idle(self) -> dict[str, int]:
        """What each process took at first, by its name."""
        found: dict[str, int] = {}
        for name, idle in self._processes.values():
            found[name] = found.get(name, 0) + idle
        return found

    def rises(self) -> dict[str, int]:
        """How far each process rose above that."""
        found: dict[str, int] = {}
        for pid, (name, idle) in self._processes.items():
            with suppress(OSError):
                found[name] = found.get(name, 0) + max(0, peak_resident_bytes(pid) - idle)
        return found

    def rise(self) -> int | None:
        """Of all processes together; None if it is not known which those are."""
        return sum(self.rises().values()) if self._processes else None


def role_of(pid: int) -> str:
    """What a process of a node does: "shard 0", "front" or "node"; empty for any other program. Raises `OSError`."""
    words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    command = next((words[at + 1 : at + 3] for at, word in enumerate(words) if word.endswith("/strandline")), [])
    return " ".join(command) if command[:1] == ["shard"] else "".join(command[:1])


def prometheus_launch(program: str, folder: Path, port: int) -> Launch:
    """Prometheus that scrapes nothing, takes remote write, and has no limit that a query of ours would meet."""
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
    """Where Prometheus is; None if it is not installed."""
    return shutil.which(PROMETHEUS)
