"""The processes of a soak test, which are restarted when they end, and the selection of processes to kill."""

import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import kill
from pathlib import Path

from strandline.node.own_command import OwnCommand
from strandline.recovery.worker_identity import WorkerName
from strandline.store.bulk_jobs import BulkPart
from strandline.store.jobs import JobState


class RestartedCommand:
    """A command that is restarted whenever it has ended."""

    def __init__(self, name: str, start: Callable[[], OwnCommand]) -> None:
        self.name, self._start = name, start
        self.command = start()

    def restart_if_ended(self) -> None:
        if self.command.exit_code is not None:
            self.command = self._start()

    def next_start(self, start: Callable[[], OwnCommand]) -> None:
        """Use another command for the next restart."""
        self._start = start

    def kill(self) -> None:
        """Kill the running process."""
        self.command.kill()

    def replace(self, start: Callable[[], OwnCommand]) -> None:
        """Stop the command, and run another one from now on."""
        self.command.end()
        self._start = start
        self.command = start()


@dataclass(frozen=True)
class KillTarget:
    """A kind of processes to kill. `pids` returns those that may be killed now; a higher weight means more kills."""

    name: str
    weight: int
    pids: Callable[[], Sequence[int]]

    def kill_one(self, choose: Callable[[Sequence[int]], int]) -> bool:
        """Kill one of them; False if there is none."""
        found = self.pids()
        if not found:
            return False
        with suppress(ProcessLookupError):
            kill(choose(found), signal.SIGKILL)
            return True
        return False


def running(commands: Sequence[RestartedCommand]) -> list[int]:
    """The pids of the running commands."""
    return [command.command.pid for command in commands if command.command.exit_code is None]


def working_pids(commands: Sequence[RestartedCommand], parts: Sequence[BulkPart]) -> list[int]:
    """The pids of the workers that have leased a part."""
    leased = {name.pid for part in parts if part.state is JobState.LEASED and (name := WorkerName.parse(part.worker))}
    return [pid for pid in running(commands) if pid in leased]


def descendants(pids: Sequence[int], words: str) -> list[int]:
    """The descendants of some processes whose command line contains these words."""
    found: list[int] = []
    waiting = list(pids)
    while waiting:
        for children in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            with suppress(OSError):
                started = [int(pid) for pid in children.read_text(encoding="ascii").split()]
                waiting += started
                found += [pid for pid in started if words in _command_line(pid)]
    return found


def _command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
