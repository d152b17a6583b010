"""The command lines of a node's child processes, and how they are started."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from strandline.node.supervisor.child import Child, ProcessChild

# systemd sets these for the supervisor only.
_SYSTEMD_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")


class Launcher(Protocol):
    """Starts child processes, each of which serves its reports at `socket`. All methods raise `LaunchFailed`."""

    def shard(self, shard: int, socket: Path, *, take: bool) -> Child:
        """Start a shard. With `take`, it takes over the shard from a live owner."""
        ...

    def front(self, socket: Path) -> Child:
        """Start the HTTP front."""
        ...

    def worker(self, socket: Path) -> Child:
        """Start the replay worker."""
        ...


class ProcessLauncher:
    """Starts `strandline shard`, `strandline front` and `strandline recover work`. The kernel kills the children when
    the calling thread ends.
    """

    def __init__(
        self, config: Path | None, environment: Mapping[str, str], folder: Path, *, listener: int | None = None
    ) -> None:
        """`folder` holds the sockets. `listener` is the descriptor of the socket that the front serves. Children get
        `environment` without the variables that systemd sets for this process.
        """
        self._config, self._folder, self._listener = config, folder, listener
        self._environment = {name: value for name, value in environment.items() if name not in _SYSTEMD_VARIABLES}

    def shard(self, shard: int, socket: Path, *, take: bool) -> ProcessChild:
        command = shard_command(shard, socket, self._config, take=take)
        return ProcessChild(command, self._environment)

    def front(self, socket: Path) -> ProcessChild:
        if self._listener is None:
            raise ValueError("a front can't be started without a listening socket")
        command = front_command(self._folder, self._listener, socket, self._config)
        return ProcessChild(command, self._environment, descriptors=(self._listener,))

    def worker(self, socket: Path) -> ProcessChild:
        return ProcessChild(worker_command(socket, self._config), self._environment)


def shard_command(shard: int, socket: Path, config: Path | None, *, take: bool) -> list[str]:
    """The command line of a shard's process, with this interpreter. It prints its error as JSON."""
    taking = ["--take"] if take else []
    return _command(["shard", str(shard), "--socket", str(socket), "--shared-worker", *taking], config)


def front_command(folder: Path, listener: int, socket: Path, config: Path | None) -> list[str]:
    """The command line of the front's process."""
    return _command(
        ["front", "--node-folder", str(folder), "--listen-fd", str(listener), "--socket", str(socket)], config
    )


def worker_command(socket: Path, config: Path | None) -> list[str]:
    """The command line of the replay worker's process."""
    return _command(["recover", "work", "--socket", str(socket)], config)


def _command(arguments: list[str], config: Path | None) -> list[str]:
    script = Path(sys.executable).with_name("strandline")
    given = ["--config", str(config.resolve())] if config is not None else []
    return [sys.executable, str(script), *arguments, *given, "--output", "json"]
