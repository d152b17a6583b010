"""A worker's name, and whether the process that goes by a name is known to be dead.

A name says on which host, since which boot and in which pid namespace a process runs, its pid, and when it started: no
other process ever has the same. Only whoever sees the same processes can tell that one is gone; everybody else waits
until its lease has run out.
"""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

# In /proc/<pid>/stat behind the name, which may hold anything: the state, and the time of the start in clock ticks.
_STATE, _STARTED = 0, 19
_DEAD = "ZXx"


@dataclass(frozen=True, slots=True)
class WorkerName:
    """One process, of all that there ever were."""

    host: str
    boot: str
    namespace: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"{self.host}/{self.boot}/{self.namespace}/{self.pid}/{self.started}"

    @classmethod
    def parse(cls, name: str) -> "WorkerName | None":
        """The process that goes by a name; None for a name of another kind."""
        match name.split("/"):
            case [host, boot, namespace, pid, started] if pid.isdecimal() and started.isdecimal():
                return cls(host, boot, namespace, int(pid), int(started))
            case _:
                return None


def _exists(pid: int) -> bool:
    """Whether there is such a process, also where /proc does not show those of other users."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class KnownProcesses(Protocol):
    """What one process knows of others, by their names."""

    def this_worker(self) -> str:
        """The name of this process."""
        ...

    def is_gone(self, worker: str) -> bool:
        """Whether the process that goes by a name is dead for sure."""
        ...

    def is_alive(self, worker: str) -> bool:
        """Whether the process that goes by a name runs for sure."""
        ...


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes that this one sees."""

    host: str = field(default_factory=socket.gethostname)
    proc: Path = Path("/proc")
    exists: Callable[[int], bool] = _exists

    def this_worker(self) -> str:
        """The name of this process."""
        return self.name_of(os.getpid())

    def name_of(self, pid: int) -> str:
        """The name of a process that runs here."""
        return str(WorkerName(self.host, self._boot(), self._namespace(), pid, self._stat(pid)[1]))

    def is_gone(self, worker: str) -> bool:
        """Whether the process that goes by a name is dead for sure: it ran here, and now there is none with its pid, or
        that is another one. No for a process elsewhere, and wherever it can't be told.
        """
        name = WorkerName.parse(worker)
        if name is None:
            return False
        try:
            if (name.host, name.boot, name.namespace) != (self.host, self._boot(), self._namespace()):
                return False
            if not self.exists(name.pid):
                return True
            state, started = self._stat(name.pid)
        except (OSError, ValueError, IndexError):
            # Not to be read, or not any more: next time it may be clear.
            return False
        return started != name.started or state in _DEAD

    def is_alive(self, worker: str) -> bool:
        """Whether the process that goes by a name runs here for sure. No wherever it can't be told."""
        name = WorkerName.parse(worker)
        if name is None:
            return False
        try:
            if (name.host, name.boot, name.namespace) != (self.host, self._boot(), self._namespace()):
                return False
            state, started = self._stat(name.pid)
        except (OSError, ValueError, IndexError):
            return False
        return started == name.started and state not in _DEAD

    def _boot(self) -> str:
        return (self.proc / "sys/kernel/random/boot_id").read_text().strip()

    def _namespace(self) -> str:
        """Where pids are counted: that of another container says nothing here, even if it has our host's name."""
        return str((self.proc / "self/ns/pid").readlink()).removeprefix("pid:[").removesuffix("]")

    def _stat(self, pid: int) -> tuple[str, int]:
        fields = (self.proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return fields[_STATE], int(fields[_STARTED])
