"""The names of workers, and whether the process with a name is known to be dead.

A name contains the host, boot id, PID namespace, PID and start time of a process, so no two processes share one. Only a
process that sees the same processes can determine that one is dead; all others wait until its lease is lost.
"""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

# Fields of /proc/<pid>/stat after the name, which may contain anything: the state, and the start time in clock ticks.
_STATE, _STARTED = 0, 19
_DEAD = "ZXx"


@dataclass(frozen=True, slots=True)
class WorkerName:
    """Identifies one process uniquely."""

    host: str
    boot: str
    namespace: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"{self.host}/{self.boot}/{self.namespace}/{self.pid}/{self.started}"

    @classmethod
    def parse(cls, name: str) -> "WorkerName | None":
        """Parse a name; None if it has another form."""
        match name.split("/"):
            case [host, boot, namespace, pid, started] if pid.isdecimal() and started.isdecimal():
                return cls(host, boot, namespace, int(pid), int(started))
            case _:
                return None


def _exists(pid: int) -> bool:
    """Whether a process exists, even if /proc hides processes of other users."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class KnownProcesses(Protocol):
    """What one process knows about others, by their names."""

    def this_worker(self) -> str:
        """The name of this process."""
        ...

    def is_gone(self, worker: str) -> bool:
        """Whether the process with this name is known to be dead."""
        ...

    def is_alive(self, worker: str) -> bool:
        """Whether the process with this name is known to run."""
        ...


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes that this one can see."""

    host: str = field(default_factory=socket.gethostname)
    proc: Path = Path("/proc")
    exists: Callable[[int], bool] = _exists

    def this_worker(self) -> str:
        """The name of this process."""
        return self.name_of(os.getpid())

    def name_of(self, pid: int) -> str:
        """The name of a process on this host."""
        return str(WorkerName(self.host, self._boot(), self._namespace(), pid, self._stat(pid)[1]))

    def is_gone(self, worker: str) -> bool:
        """Whether the process with this name is known to be dead: it ran here, and its PID is unused now or belongs to
        another process. False for processes elsewhere and if it can't be determined.
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
            # Unreadable, or the process ended meanwhile: the next call may find out.
            return False
        return started != name.started or state in _DEAD

    def is_alive(self, worker: str) -> bool:
        """Whether the process with this name is known to run here. False if it can't be determined."""
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
        """The PID namespace: PIDs of another container are meaningless here, even if it has our host's name."""
        return str((self.proc / "self/ns/pid").readlink()).removeprefix("pid:[").removesuffix("]")

    def _stat(self, pid: int) -> tuple[str, int]:
        fields = (self.proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return fields[_STATE], int(fields[_STARTED])
