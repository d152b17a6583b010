"""Creates a supervisor of real processes from the settings."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from strandline.clock import Clock
from strandline.node.replay.service import worker_folder
from strandline.node.settings.load import LoadedSettings
from strandline.node.supervisor.keeper import KeeperSettings
from strandline.node.supervisor.launching import ProcessLauncher
from strandline.node.supervisor.processes import NodeProcesses
from strandline.node.supervisor.role import front_role, shard_role, worker_role
from strandline.node.supervisor.supervisor import Supervisor


@contextmanager
def assembled_supervisor(
    loaded: LoadedSettings,
    environ: Mapping[str, str],
    clock: Clock,
    folder: Path,
    *,
    listener: int | None = None,
    on_terminal: bool = False,
    take: bool = False,
) -> Iterator[Supervisor]:
    """A supervisor that is not started yet. It is stopped when the context ends.

    `folder` is for the sockets. `listener` is the descriptor of the socket that the front serves; without it, there is
    no front. `on_terminal` is whether our log goes to a terminal: children write theirs into a pipe, and can't find
    out. With `take`, shards are taken over from live owners.
    """
    settings, environment = loaded.settings, dict(environ)
    if on_terminal and settings.log.format == "auto":
        environment["STRANDLINE_LOG__FORMAT"] = "console"
    launcher = ProcessLauncher(loaded.file, environment, folder, listener=listener)

    def processes(keeper_settings: KeeperSettings) -> NodeProcesses:
        return NodeProcesses(
            lambda shard: shard_role(shard, launcher, folder, clock, take=take),
            keeper_settings,
            clock,
            front=front_role(launcher, folder, clock) if listener is not None else None,
            worker=worker_role(launcher, folder, worker_folder(settings, environ), clock),
        )

    supervisor = Supervisor(settings, processes, clock)
    try:
        yield supervisor
    finally:
        supervisor.stop()
