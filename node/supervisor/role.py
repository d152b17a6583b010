"""What differs between the kinds of child processes: how one is started, how it is asked for its report, and how much
patience there is with it. All the rest is the same code, `keeper`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from strandline.clock import Clock
from strandline.disk import DiskFull
from strandline.errors import Retryable
from strandline.node.shard.folder_lock import is_locked
from strandline.node.status.processes import FRONT, WORKER
from strandline.node.supervisor.child import Child
from strandline.node.supervisor.heard import Heard, heard_from_process, heard_from_shard
from strandline.node.supervisor.launching import Launcher
from strandline.node.supervisor.report_client import ReportClient
from strandline.node.supervisor.restarting import RestartPolicy
from strandline.node.supervisor.socket_folder import process_socket, socket_path

# A start of the front reads nothing again and takes a second, and until it serves nobody is answered: so it is tried
# soon, and for as long as the node runs.
_FRONT_FIRST_PAUSE_S, _FRONT_MOST_PAUSE_S = 0.1, 15.0
_WORKER_REMEDY = (
    "Fix the cause, then reload the node. `strandline recover work` runs the worker by hand, and "
    'replay.mode = "direct" does without it'
)


class NotHeard(Retryable):
    """There is no report, or one of another version."""


def _as_it_is(policy: RestartPolicy) -> RestartPolicy:
    return policy


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Role:
    """One child's part. `launch` starts a process and raises `LaunchFailed`; `hear` asks it within a timeout, and
    raises `NotHeard`; `close` lets go of the connection. `policy` changes how ends are dealt with, and `remedy` says
    what to do about one that is down. One that works `on_demand` may end with code 0 at any time, and is started only
    while it is wanted and `may_start`.
    """

    name: str
    launch: Callable[[], Child]
    hear: Callable[[float], Heard]
    close: Callable[[], None] = lambda: None
    policy: Callable[[RestartPolicy], RestartPolicy] = _as_it_is
    remedy: str = ""
    on_demand: bool = False
    may_start: Callable[[], bool] = _always


Roles = Callable[[int], Role]
"""The role of a shard, by its number."""


def shard_role(shard: int, launcher: Launcher, folder: Path, clock: Clock, *, take: bool = False) -> Role:
    """A shard's process. With `take` its first start takes the shard from a live owner."""
    socket = socket_path(folder, shard)
    reports = ReportClient(socket, clock)
    starts = count()

    def launch() -> Child:
        return launcher.shard(shard, socket, take=take and next(starts) == 0)

    return Role(f"shard {shard}", launch, _hearing(reports, heard_from_shard), reports.close)


def front_role(launcher: Launcher, folder: Path, clock: Clock) -> Role:
    """The HTTP front. It is never left down: without it nobody could see why."""
    socket = process_socket(folder, FRONT)
    reports = ReportClient(socket, clock)

    def policy(given: RestartPolicy) -> RestartPolicy:
        return replace(given, first_pause_s=_FRONT_FIRST_PAUSE_S, most_pause_s=_FRONT_MOST_PAUSE_S, gives_up=False)

    return Role(FRONT, lambda: launcher.front(socket), _hearing(reports, heard_from_process), reports.close, policy)


def worker_role(launcher: Launcher, folder: Path, place: Path, clock: Clock) -> Role:
    """The replay worker. `place` is the folder that it locks: while another worker of this machine has it, that one
    does the jobs.
    """
    socket = process_socket(folder, WORKER)
    reports = ReportClient(socket, clock)
    return Role(
        WORKER,
        lambda: launcher.worker(socket),
        _hearing(reports, heard_from_process),
        reports.close,
        remedy=_WORKER_REMEDY,
        on_demand=True,
        may_start=lambda: not _is_held(place),
    )


def _is_held(place: Path) -> bool:
    try:
        return is_locked(place)
    except (OSError, DiskFull):
        # A folder that can't be used is for the worker to report.
        return False


def _hearing(reports: ReportClient, parse: Callable[[bytes], Heard]) -> Callable[[float], Heard]:
    def hear(timeout: float) -> Heard:
        document = reports.ask(timeout)
        try:
            return parse(document)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # A process of another version, after an upgrade.
            raise NotHeard(f"its report can't be read: {error}", remedy="Restart the node after an upgrade") from error

    return hear
