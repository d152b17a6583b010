"""The servers on which lookups are measured: a node and VictoriaMetrics, each with its data in a folder."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from strandline.clock import Clock, wait_until
from strandline.errors import Fatal
from strandline.node.bench.timed_connection import NotAnswered, TimedConnection
from strandline.node.tether import tethered

LOOPBACK = "127.0.0.1"
PEER_PROGRAM = "victoria-metrics"
PEER_MISSING = f"{PEER_PROGRAM} is not installed, so there is no comparison: `sudo apt-get install {PEER_PROGRAM}`"
_START_TIMEOUT_S = 300.0
_IDLE_SHARE = 0.05
# The number of consecutive polls, two seconds apart: an index is merged some seconds after the last new series.
_IDLE_POLLS = 8
_IDLE_TIMEOUT_S = 120.0
_STOP_TIMEOUT_S = 60.0


class ServerEnded(Fatal):
    """A server ended, or did not reach the expected state in time."""


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a server, and its process; None if it was started externally."""

    name: str
    host: str
    port: int
    pid: int | None = None

    @property
    def pids(self) -> tuple[int, ...]:
        """Its process, if known."""
        return () if self.pid is None else (self.pid,)

    def connect(self) -> TimedConnection:
        """A new connection."""
        return TimedConnection(self.host, self.port)

    def cpu_seconds(self) -> float | None:
        """The CPU time of its process and its descendants so far; None if the process is not known."""
        return None if self.pid is None else cpu_seconds(self.pid)


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.create_server((LOOPBACK, 0)) as bound:
        port: int = bound.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class Launch:
    """How a server is started: its command, its port, the path that is answered with 200 when it is ready, and the file
    for its output.
    """

    name: str
    command: tuple[str, ...]
    port: int
    ready: str
    log: Path


@contextmanager
def running(launch: Launch, clock: Clock) -> Iterator[Server]:
    """Start a server, and wait until it is ready. It is stopped at the end of the block."""
    with launch.log.open("ab") as log:
        process = subprocess.Popen(tethered(list(launch.command)), stdout=log, stderr=log)
    try:
        _wait_until_ready(launch, process, clock)
        yield Server(launch.name, LOOPBACK, launch.port, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def node_launch(settings: Path, port: int, log: Path) -> Launch:
    """A node with these settings, which must contain the port."""
    script = str(Path(sys.executable).with_name("strandline"))
    return Launch("strandline", (sys.executable, script, "node", "--config", str(settings)), port, "/-/ready", log)


def peer_launch(program: str, folder: Path, port: int) -> Launch:
    """VictoriaMetrics, with limits for queries and connections that the lookups don't reach."""
    command = (
        program,
        f"-storageDataPath={folder / 'data'}",
        f"-httpListenAddr={LOOPBACK}:{port}",
        "-retentionPeriod=1",
        "-http.connTimeout=1h",
        "-search.maxSeries=10000000",
        "-search.maxTagValues=10000000",
    )
    return Launch(PEER_PROGRAM, command, port, "/health", folder / "log")


def peer_program() -> str | None:
    """The path of VictoriaMetrics; None if it is not installed."""
    return shutil.which(PEER_PROGRAM)


def wait_until_idle(pids: Sequence[int], clock: Clock) -> bool:
    """Wait until the processes have finished their work on new data, such as merging and compiling. Returns False after
    a timeout.
    """
    before, at, idle_polls = sum(map(cpu_seconds, pids)), clock.monotonic(), 0

    def is_idle() -> bool:
        nonlocal before, at, idle_polls
        spent, now = sum(map(cpu_seconds, pids)), clock.monotonic()
        share = (spent - before) / max(0.001, now - at)
        before, at = spent, now
        idle_polls = idle_polls + 1 if share < _IDLE_SHARE * len(pids) else 0
        return idle_polls >= _IDLE_POLLS

    clock.sleep(2.0)
    return wait_until(is_idle, timeout=_IDLE_TIMEOUT_S, clock=clock, poll=2.0)


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process and its descendants so far, including those that have ended and were waited for."""
    ticks = 0
    for each in _tree(pid):
        with suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in children.read_text(encoding="ascii").split():
                yield from _tree(int(child))


def _wait_until_ready(launch: Launch, process: subprocess.Popen[bytes], clock: Clock) -> None:
    def answers() -> bool:
        if process.poll() is not None:
            return True
        with suppress(OSError, NotAnswered), closing(TimedConnection(LOOPBACK, launch.port)) as connection:
            return connection.get(launch.ready).status == 200
        return False

    in_time = wait_until(answers, timeout=_START_TIMEOUT_S, clock=clock, poll=0.2)
    if process.poll() is not None or not in_time:
        lines = launch.log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
        code = process.poll()
        how = f"ended with exit code {code}" if code is not None else f"is not ready after {_START_TIMEOUT_S:g} s"
        raise ServerEnded(f"{launch.name} {how}", remedy="The end of its output:\n" + "\n".join(lines))
