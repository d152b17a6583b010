"""The output of the `stack` commands, as text and as JSON."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from strandline.node.output import Block, Table
from strandline.node.stack.logs import last_lines
from strandline.node.stack.ports import LOOPBACK
from strandline.node.stack.record import StackRecord
from strandline.node.stack.state import StateFolder
from strandline.node.stack.status import ServerStatus, StackStatus


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of a stack that is up. `started` is False if it was up before the command."""

    started: bool
    kafka: str
    cassandra: str
    state_dir: str

    def blocks(self) -> Iterable[Block]:
        yield "The stack is up." if self.started else "The stack is up already."
        yield Table(("server", "address"), (("Kafka", self.kafka), ("Cassandra", self.cassandra)))
        yield f"State folder: {self.state_dir}"
        yield "Stop it with: strandline stack down"


def addresses(record: StackRecord, folder: StateFolder, *, started: bool) -> Addresses:
    ports = record.ports
    return Addresses(
        started=started,
        kafka=f"{LOOPBACK}:{ports.kafka}",
        cassandra=f"{LOOPBACK}:{ports.cassandra}",
        state_dir=str(folder.root),
    )


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The fields of `StackStatus`."""

    healthy: bool
    state: str
    state_dir: str
    keeper_pid: int | None
    uptime_seconds: float | None
    failure: str
    servers: tuple[ServerStatus, ...]

    @classmethod
    def of(cls, status: StackStatus) -> Self:
        return cls(**{name: getattr(status, name) for name in cls.__slots__})

    def blocks(self) -> Iterable[Block]:
        if not self.servers:
            yield f"No stack runs in {self.state_dir}."
            if self.failure:
                yield f"The last one ended: {self.failure}"
            return
        yield (
            f"The stack in {self.state_dir} is {'healthy' if self.healthy else 'not healthy'} ({self.state} for "
            f"{_duration(self.uptime_seconds or 0.0)}, keeper {self.keeper_pid})."
        )
        yield Table(
            ("server", "health", "address", "version", "pid", "memory", "data", "log"),
            tuple(
                (
                    server.name,
                    "healthy" if server.healthy else "unhealthy",
                    server.address,
                    server.version,
                    str(server.pid or "-"),
                    _size(server.resident_bytes),
                    _size(server.data_bytes),
                    server.log,
                )
                for server in self.servers
            ),
        )
        yield from (f"{server.name}: {server.problem}" for server in self.servers if server.problem)


@dataclass(frozen=True, slots=True)
class Stopped:
    """The result of `stack down`. `stopped` is False if no stack was running. `removed` has what --wipe deleted."""

    state_dir: str
    stopped: bool
    removed: tuple[str, ...]

    def blocks(self) -> Iterable[Block]:
        yield "The stack is down." if self.stopped else f"No stack was running in {self.state_dir}."
        if self.removed:
            yield "Removed:"
            yield from (f"  {path}" for path in self.removed)
        elif self.stopped:
            yield f"Its data is kept in {self.state_dir}."


@dataclass(frozen=True, slots=True)
class Log:
    """The end of one log."""

    path: Path
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Logs:
    """The ends of several logs."""

    logs: tuple[Log, ...]

    @classmethod
    def read(cls, paths: Iterable[Path], count: int) -> Self:
        return cls(tuple(Log(path, tuple(last_lines(path, count))) for path in paths))

    def blocks(self) -> Iterable[Block]:
        for log in self.logs:
            if len(self.logs) > 1:
                yield f"==> {log.path} <=="
            yield from log.lines


@dataclass(frozen=True, slots=True)
class FollowedLog:
    """The end of a log, followed by the lines that are appended to it. The text is infinite."""

    path: Path
    lines: Iterator[str] = field(repr=False)

    def blocks(self) -> Iterable[Block]:
        return self.lines


def _size(count: int | None) -> str:
    if count is None:
        return "-"
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"
