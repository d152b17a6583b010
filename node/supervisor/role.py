"""What differs between the kinds of child processes: how one is started, how its report is fetched, and when it is
restarted. `ProcessKeeper` has everything else.
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
from strandline.node.supervisor.child_report import ChildReport, parse_process_report, parse_shard_report
from strandline.node.supervisor.launching import Launcher
from strandline.node.supervisor.report_client import ReportClient
from strandline.node.supervisor.restarting import RestartPolicy
from strandline.node.supervisor.socket_folder import process_socket, socket_path

# A front starts within a second, and without it no request is answered. So it is restarted after short pauses and
# without a limit.
_FRONT_MIN_PAUSE_S, _FRONT_MAX_PAUSE_S = 0.1, 15.0
_WORKER_REMEDY = (
    "Fix the cause, then reload the node. `strandline recover work` runs the worker by hand, and "
    'replay.mode = "direct" does without it'
)


class ReportUnreadable(Retryable):
    """The child sent no report, or one of another version."""


def _unchanged(policy: RestartPolicy) -> RestartPolicy:
    return policy


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Role:
    """A kind of child. `launch` starts a process and raises `LaunchFailed`. `fetch_report` fetches its report within a
    timeout and raises `NoReport` or `ReportUnreadable`; `close` closes the connection for it. `policy` adjusts the
    restart policy. `remedy` is what an operator can do about a process that is down. A child `on_demand` may exit with
    code 0 at any time, and is started only while it is wanted and `may_start` is true.
    """

    name: str
    launch: Callable[[], Child]
    fetch_report: Callable[[float], ChildReport]
    close: Callable[[], None] = lambda: None
    policy: Callable[[RestartPolicy], RestartPolicy] = _unchanged
    remedy: str = ""
    on_demand: bool = False
    may_start: Callable[[], bool] = _always


Roles = Callable[[int], Role]
"""The role of a shard, by its number."""


def shard_role(shard: int, launcher: Launcher, folder: Path, clock: Clock, *, take: bool = False) -> Role:
    """A shard's process. With `take`, its first start takes over the shard from a live owner."""
    socket = socket_path(folder, shard)
    reports = ReportClient(socket, clock)
    starts = count()

    def launch() -> Child:
        return launcher.shard(shard, socket, take=take and next(starts) == 0)

    return Role(f"shard {shard}", launch, _fetching(reports, parse_shard_report), reports.close)


def front_role(launcher: Launcher, folder: Path, clock: Clock) -> Role:
    """The HTTP front. It is restarted without a limit, because operators need it to see what is wrong."""
    socket = process_socket(folder, FRONT)
    reports = ReportClient(socket, clock)

    def policy(given: RestartPolicy) -> RestartPolicy:
        return replace(given, min_pause_s=_FRONT_MIN_PAUSE_S, max_pause_s=_FRONT_MAX_PAUSE_S, gives_up=False)

    return Role(FRONT, lambda: launcher.front(socket), _fetching(reports, parse_process_report), reports.close, policy)


def worker_role(launcher: Launcher, folder: Path, worker_folder: Path, clock: Clock) -> Role:
    """The replay worker, which locks `worker_folder`. While another worker on this machine holds the lock, none is
    started: the other worker does the jobs.
    """
    socket = process_socket(folder, WORKER)
    reports = ReportClient(socket, clock)
    return Role(
        WORKER,
        lambda: launcher.worker(socket),
        _fetching(reports, parse_process_report),
        reports.close,
        remedy=_WORKER_REMEDY,
        on_demand=True,
        may_start=lambda: not _is_locked(worker_folder),
    )


def _is_locked(folder: Path) -> bool:
    try:
        return is_locked(folder)
    except (OSError, DiskFull):
        # The worker reports a folder that can't be used.
        return False


def _fetching(reports: ReportClient, parse: Callable[[bytes], ChildReport]) -> Callable[[float], ChildReport]:
    def fetch_report(timeout: float) -> ChildReport:
        document = reports.fetch(timeout)
        try:
            return parse(document)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # A process of another version, after an upgrade.
            raise ReportUnreadable(
                f"its report can't be parsed: {error}", remedy="Restart the node after an upgrade"
            ) from error

    return fetch_report
