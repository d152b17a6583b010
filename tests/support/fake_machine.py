"""A machine whose processes a test starts and kills, for owners of shards and leases of jobs."""

import os

from strandline.recovery.worker_identity import Processes


class FakeProcess:
    """One process of a machine, which knows which of the others are dead."""

    def __init__(self, name: str, dead: set[str]) -> None:
        self._name, self._dead = name, dead

    def kill(self) -> None:
        """Kill this process."""
        self._dead.add(self._name)

    def this_worker(self) -> str:
        return self._name

    def is_gone(self, worker: str) -> bool:
        return worker in self._dead

    def is_alive(self, worker: str) -> bool:
        return worker.startswith("here/") and worker not in self._dead


def running_process() -> FakeProcess:
    """Another running process, with its real name."""
    return FakeProcess(Processes().name_of(os.getppid()), set())


class FakeMachine:
    """A machine whose processes live until they are killed."""

    def __init__(self) -> None:
        self._started, self._dead = 0, set[str]()

    def process(self) -> FakeProcess:
        """Another process."""
        self._started += 1
        return FakeProcess(f"here/boot/namespace/{self._started}/0", self._dead)

    def end(self, name: str) -> None:
        """Kill a process by its name, even if another test has started it."""
        self._dead.add(name)
