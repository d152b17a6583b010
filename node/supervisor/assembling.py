"""From settings to a supervisor of real processes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from strandline.clock import Clock
from strandline.node.settings.load import LoadedSettings
from strandline.node.supervisor.child import ProcessLauncher
from strandline.node.supervisor.links import Link, LinkFactory
from strandline.node.supervisor.socket_folder import socket_folder
from strandline.node.supervisor.supervisor import Supervisor


@contextmanager
def assembled_supervisor(
    loaded: LoadedSettings,
    environ: Mapping[str, str],
    clock: Clock,
    links: LinkFactory[Link],
    *,
    on_terminal: bool = False,
) -> Iterator[Supervisor[Link]]:
    """A supervisor that is not started yet, and is stopped at the end at the latest. `on_terminal` says that the log is
    read by a person: shards write theirs into a pipe, and could not know.
    """
    settings, environment = loaded.settings, dict(environ)
    if on_terminal and settings.log.format == "auto":
        environment["STRANDLINE_LOG__FORMAT"] = "console"
    with socket_folder(environ) as folder:
        launcher = ProcessLauncher(loaded.file, environment, folder)
        supervisor = Supervisor(settings, launcher, links, folder=folder, clock=clock)
        try:
            yield supervisor
        finally:
            supervisor.stop()
