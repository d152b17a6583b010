"""All child processes of a node: the keepers of its shards, its front and its replay worker. It has no thread."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import structlog

from strandline.clock import Clock
from strandline.node.status.processes import ProcessState, ProcessStatus, ShardProcessStatus
from strandline.node.supervisor.keeper import KeeperSettings, ProcessKeeper
from strandline.node.supervisor.role import Role, Roles

_LOG = structlog.get_logger(__name__)
# After a longer pause between two checks, the supervisor, or the whole machine, was suspended.
_MAX_PAUSE_S = 5.0
# When the node stops, the front may finish its requests before the shards are terminated: for this long, or for this
# part of node.stop_timeout if that is shorter.
_FRONT_STOP_TIMEOUT_S, _FRONT_STOP_TIMEOUT_PART = 7.0, 1 / 3


@dataclass(frozen=True, slots=True)
class ProcessHeartbeat:
    """The heartbeat of a child, for systemd's watchdog. `beats` counts its heartbeats. `must_iterate` is whether its
    loop is expected to run. `pid` distinguishes a process from the previous one.
    """

    name: str
    pid: int | None
    beats: int = 0
    must_iterate: bool = False


KeeperOf = Callable[[Role, KeeperSettings], ProcessKeeper]


class NodeProcesses:
    """The keepers of all children. Not thread-safe: one thread calls it."""

    def __init__(
        self,
        shard_roles: Roles,
        settings: KeeperSettings,
        clock: Clock,
        *,
        front: Role | None = None,
        worker: Role | None = None,
        keeper_of: KeeperOf | None = None,
    ) -> None:
        """`shard_roles` gives the role of each shard that is served. `keeper_of` replaces the keepers in tests."""
        self._shard_roles, self._settings, self._clock = shard_roles, settings, clock
        self._keeper_of = keeper_of or (lambda role, given: ProcessKeeper(role, given, clock))
        self._checked_at = clock.monotonic()
        self._shards: dict[int, ProcessKeeper] = {}
        self._front = self._keeper_of(front, settings) if front is not None else None
        self._worker = self._keeper_of(worker, settings) if worker is not None else None
        self._left: list[ProcessKeeper] = []
        self._stopping_since: float | None = None
        self._shards_terminated = False

    def serve(self, shards: Collection[int]) -> None:
        """Serve exactly these shards: start the new ones, and stop the others."""
        for shard in sorted(self._shards.keys() - set(shards)):
            _LOG.info("shard is no longer served here", shard=shard)
            keeper = self._shards.pop(shard)
            keeper.stop()
            self._left.append(keeper)
        for shard in sorted(set(shards) - self._shards.keys()):
            self._shards[shard] = self._keeper_of(self._shard_roles(shard), self._settings)

    def apply(self, settings: KeeperSettings) -> None:
        """Apply new settings."""
        self._settings = settings
        for keeper in self._all():
            keeper.settings = settings

    def check(self) -> None:
        """Check each child, and start or kill those for which that is due."""
        # Since the end of the last check: a check itself may wait for children that don't answer.
        pause = self._clock.monotonic() - self._checked_at
        if self._worker is not None and self._stopping_since is None:
            self._worker.want(self._has_jobs())
        for keeper in self._all():
            if pause > _MAX_PAUSE_S:
                keeper.discount_pause(pause)
            keeper.check()
        self._checked_at = self._clock.monotonic()
        # A removed shard may be served again before its process has ended. The new process then finds its folder in
        # use and ends, and its keeper retries.
        self._left = [keeper for keeper in self._left if not keeper.has_stopped]
        self._stop_shards_when_due()

    def restart(self, shard: int) -> None:
        """Start a new process for a shard, if it is served. A worker that is down is restarted too: the shard may be
        waiting for it.
        """
        if shard in self._shards:
            self._shards[shard].restart()
            if self._worker is not None:
                self._worker.restart_if_down()

    def restart_if_down(self) -> None:
        """Restart all children that are down."""
        for keeper in self._all():
            keeper.restart_if_down()

    def stop(self) -> None:
        """Stop all children, and kill those that have not ended within `node.stop_timeout`. The front stops first. The
        shards are terminated together once it has finished its requests or was killed after a short time.
        """
        if self._stopping_since is not None:
            return
        self._stopping_since = self._clock.monotonic()
        if self._front is not None:
            self._front.stop(self._stopping_since + self._front_stop_timeout_s())
        if self._worker is not None:
            self._worker.stop(self._stop_by())
        for keeper in self._shards.values():
            # A shard that ends in the meantime is not restarted.
            keeper.want(False)
        self._stop_shards_when_due()

    def kill(self) -> None:
        """Kill all children."""
        for keeper in self._all():
            keeper.kill()

    @property
    def has_stopped(self) -> bool:
        """Whether `stop` was called and all children have ended."""
        return all(keeper.has_stopped for keeper in self._all())

    @property
    def next_start_s(self) -> float:
        """The time until the next start of any child; infinite if none is due."""
        return min((keeper.starts_in_s for keeper in self._all()), default=float("inf"))

    def shards(self) -> tuple[ShardProcessStatus, ...]:
        """The status of the shards, by number."""
        return tuple(_shard_status(shard, self._shards[shard]) for shard in sorted(self._shards))

    def others(self) -> tuple[ProcessStatus, ...]:
        """The status of the front and the worker."""
        return tuple(keeper.status() for keeper in (self._front, self._worker) if keeper is not None)

    def heartbeats(self) -> tuple[ProcessHeartbeat, ...]:
        """The heartbeats of all children."""
        front = (self._front,) if self._front is not None else ()
        worker = (self._worker,) if self._worker is not None else ()
        return tuple(map(_heartbeat, (*front, *(self._shards[shard] for shard in sorted(self._shards)), *worker)))

    def _all(self) -> Iterable[ProcessKeeper]:
        # The front first: it restarts fastest, and clients wait for it.
        front = (self._front,) if self._front is not None else ()
        worker = (self._worker,) if self._worker is not None else ()
        return (*front, *self._shards.values(), *self._left, *worker)

    def _has_jobs(self) -> bool:
        """Whether any shard has open replay jobs."""
        reports = (keeper.report.shard for keeper in self._shards.values() if keeper.report is not None)
        return any(report is not None and report.open_jobs for report in reports)

    def _front_stop_timeout_s(self) -> float:
        return min(_FRONT_STOP_TIMEOUT_S, self._settings.stop_timeout_s * _FRONT_STOP_TIMEOUT_PART)

    def _stop_by(self) -> float:
        since = self._stopping_since if self._stopping_since is not None else self._clock.monotonic()
        return since + self._settings.stop_timeout_s

    def _stop_shards_when_due(self) -> None:
        if self._stopping_since is None or self._shards_terminated:
            return
        waited = self._clock.monotonic() - self._stopping_since
        if self._front is None or self._front.has_stopped or waited >= self._front_stop_timeout_s():
            self._shards_terminated = True
            for keeper in (*self._shards.values(), *self._left):
                keeper.stop(self._stop_by())


def _shard_status(shard: int, keeper: ProcessKeeper) -> ShardProcessStatus:
    process, report = keeper.status(), keeper.report
    return ShardProcessStatus(
        shard,
        process.state,
        pid=process.pid,
        restarts=process.restarts,
        starts_in_s=process.starts_in_s,
        exit_code=process.exit_code,
        reason=process.reason,
        report=report.shard if report is not None else None,
    )


def _heartbeat(keeper: ProcessKeeper) -> ProcessHeartbeat:
    status, liveness = keeper.status(), keeper.liveness
    if liveness is None or status.state not in (ProcessState.STARTING, ProcessState.RUNNING):
        return ProcessHeartbeat(keeper.name, None)
    return ProcessHeartbeat(keeper.name, status.pid, liveness.beats, liveness.must_iterate)
