"""The processes of a soak, each started again when it has ended, and which of them may be killed."""

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


class Kept:
    """A command that is started again whenever it has ended."""

    def __init__(self, name: str, start: Callable[[], OwnCommand]) -> None:
        self.name, self._start = name, start
        self.command = start()

    def restart_if_ended(self) -> None:
        if self.command.exit_code is not None:
            self.command = self._start()

    def next_start(self, start: Callable[[], OwnCommand]) -> None:
        """Start another command the next time."""
        self._start = start

    def kill(self) -> None:
        """End what runs now."""
        self.command.kill()

    def replace(self, start: Callable[[], OwnCommand]) -> None:
        """Ask the command to end, and keep another one from now on."""
        self.command.end()
        self._start = start
        self.command = start()


@dataclass(frozen=True)
class Victim:
    """Processes of one kind. `pids` names those that may be killed now; a higher weight means more kills."""

    name: str
    weight: int
    pids: Callable[[], Sequence[int]]

    def kill_one(self, choose: Callable[[Sequence[int]], int]) -> bool:
        """Kill one of them at once; False if there is none."""
        found = self.pids()
        if not found:
            return False
        with suppress(ProcessLookupError):
            kill(choose(found), signal.SIGKILL)
            return True
        return False


def running(kept: Sequence[Kept]) -> list[int]:
    """The commands that run now."""
    return [one.command.pid for one in kept if one.command.exit_code is None]


def working(kept: Sequence[Kept], parts: Sequence[BulkPart]) -> list[int]:
    """Those of some workers that have a part now."""
    leased = {name.pid for part in parts if part.state is JobState.LEASED and (name := WorkerName.parse(part.worker))}
    return [pid for pid in running(kept) if pid in leased]


def below(pids: Sequence[int], words: str) -> list[int]:
    """Processes that some others have started, directly or not, and whose command line has these words."""
    found: list[int] = []
    waiting = list(pids)
    while waiting:
        for children in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            with suppress(OSError):
                started = [int(one) for one in children.read_text(encoding="ascii").split()]
                waiting += started
                found += [one for one in started if words in _command_line(one)]
    return found


def _command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""
