"""All child processes of a node: the keepers of its shards, of its front and of its replay worker, looked after one by
one. No thread and no sleep in it.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import structlog

from strandline.clock import Clock
from strandline.node.status.processes import ProcessState, ProcessStatus, ShardProcessStatus
from strandline.node.supervisor.keeper import KeepingRules, ProcessKeeper
from strandline.node.supervisor.role import Role, Roles

_LOG = structlog.get_logger(__name__)
# After a longer pause between two looks it was the supervisor that stood still, and perhaps the machine.
_LONGEST_PAUSE_S = 5.0
# When the node stops, the front may finish the requests that it has before the shards are asked to end: for this long,
# or for this part of node.stop_timeout if that is shorter.
_FRONT_FIRST_S, _FRONT_FIRST_PART = 7.0, 1 / 3


@dataclass(frozen=True, slots=True)
class ProcessVital:
    """A child's signs of life, for the service manager. `beats` rises with each; `turning` says whether its loop should
    be turning; `pid` tells one process from the next.
    """

    name: str
    pid: int | None
    beats: int = 0
    turning: bool = False


KeeperOf = Callable[[Role, KeepingRules], ProcessKeeper]


class NodeProcesses:
    """The keepers. All calls come from one thread."""

    def __init__(
        self,
        shard_roles: Roles,
        rules: KeepingRules,
        clock: Clock,
        *,
        front: Role | None = None,
        worker: Role | None = None,
        keeper_of: KeeperOf | None = None,
    ) -> None:
        """`shard_roles` gives the role of each shard that is served. Tests may have their own keepers made."""
        self._shard_roles, self._rules, self._clock = shard_roles, rules, clock
        self._keeper_of = keeper_of or (lambda role, given: ProcessKeeper(role, given, clock))
        self._looked = clock.monotonic()
        self._shards: dict[int, ProcessKeeper] = {}
        self._front = self._keeper_of(front, rules) if front is not None else None
        self._worker = self._keeper_of(worker, rules) if worker is not None else None
        self._left: list[ProcessKeeper] = []
        self._leaving_since: float | None = None
        self._shards_asked = False

    def serve(self, shards: Collection[int]) -> None:
        """Serve these shards from now on: new ones are started, others asked to end."""
        for shard in sorted(self._shards.keys() - set(shards)):
            _LOG.info("shard is no longer served here", shard=shard)
            keeper = self._shards.pop(shard)
            keeper.leave()
            self._left.append(keeper)
        for shard in sorted(set(shards) - self._shards.keys()):
            self._shards[shard] = self._keeper_of(self._shard_roles(shard), self._rules)

    def follow(self, rules: KeepingRules) -> None:
        """Other rules from now on."""
        self._rules = rules
        for keeper in self._all():
            keeper.rules = rules

    def look(self) -> None:
        """Look at each."""
        # Since the end of the last look: the looks themselves may wait for children that don't answer.
        stood_still = self._clock.monotonic() - self._looked
        if self._worker is not None and self._leaving_since is None:
            self._worker.want(self._has_jobs())
        for keeper in self._all():
            if stood_still > _LONGEST_PAUSE_S:
                keeper.excuse(stood_still)
            keeper.look()
        self._looked = self._clock.monotonic()
        # A shard that is served again meanwhile waits for its folder by itself: a second process would find it in use.
        self._left = [keeper for keeper in self._left if not keeper.is_gone]
        self._stop_shards_when_due()

    def restart(self, shard: int) -> None:
        """A new process for a shard, if it is served. A worker that is down is tried again as well: the shard may be
        waiting for it.
        """
        if shard in self._shards:
            self._shards[shard].restart()
            if self._worker is not None:
                self._worker.revive()

    def revive(self) -> None:
        """Start all that are down."""
        for keeper in self._all():
            keeper.revive()

    def leave(self) -> None:
        """Ask all to end, and kill within `node.stop_timeout` from now those that have not. The front comes first: once
        it has finished its requests, or is killed after a short time, the shards are asked, all at once.
        """
        if self._leaving_since is not None:
            return
        self._leaving_since = self._clock.monotonic()
        if self._front is not None:
            self._front.leave(self._leaving_since + self._front_patience())
        if self._worker is not None:
            self._worker.leave(self._stop_by())
        for keeper in self._shards.values():
            # Those that end in the meantime are not started again.
            keeper.want(False)
        self._stop_shards_when_due()

    def kill(self) -> None:
        """End all at once."""
        for keeper in self._all():
            keeper.kill()

    @property
    def is_gone(self) -> bool:
        """Whether all were asked to end, and have."""
        return all(keeper.is_gone for keeper in self._all())

    @property
    def next_start_s(self) -> float:
        """How long it is until the next process is started; infinite if none is to be."""
        return min((keeper.starts_in_s for keeper in self._all()), default=float("inf"))

    def shards(self) -> tuple[ShardProcessStatus, ...]:
        """In the order of their numbers."""
        return tuple(_shard_status(shard, self._shards[shard]) for shard in sorted(self._shards))

    def others(self) -> tuple[ProcessStatus, ...]:
        """The front and the worker."""
        return tuple(keeper.status() for keeper in (self._front, self._worker) if keeper is not None)

    def vitals(self) -> tuple[ProcessVital, ...]:
        """The signs of life of all of them."""
        front = (self._front,) if self._front is not None else ()
        worker = (self._worker,) if self._worker is not None else ()
        return tuple(map(_vital, (*front, *(self._shards[shard] for shard in sorted(self._shards)), *worker)))

    def _all(self) -> Iterable[ProcessKeeper]:
        # The front first: its restart is the quickest, and the one that people wait for.
        front = (self._front,) if self._front is not None else ()
        worker = (self._worker,) if self._worker is not None else ()
        return (*front, *self._shards.values(), *self._left, *worker)

    def _has_jobs(self) -> bool:
        """Whether a shard has jobs that nobody has done."""
        reports = (keeper.heard.shard for keeper in self._shards.values() if keeper.heard is not None)
        return any(report is not None and report.open_jobs for report in reports)

    def _front_patience(self) -> float:
        return min(_FRONT_FIRST_S, self._rules.stop_timeout_s * _FRONT_FIRST_PART)

    def _stop_by(self) -> float:
        since = self._leaving_since if self._leaving_since is not None else self._clock.monotonic()
        return since + self._rules.stop_timeout_s

    def _stop_shards_when_due(self) -> None:
        if self._leaving_since is None or self._shards_asked:
            return
        waited = self._clock.monotonic() - self._leaving_since
        if self._front is None or self._front.is_gone or waited >= self._front_patience():
            self._shards_asked = True
            for keeper in (*self._shards.values(), *self._left):
                keeper.leave(self._stop_by())


def _shard_status(shard: int, keeper: ProcessKeeper) -> ShardProcessStatus:
    process, heard = keeper.status(), keeper.heard
    return ShardProcessStatus(
        shard,
        process.state,
        pid=process.pid,
        restarts=process.restarts,
        starts_in_s=process.starts_in_s,
        exit_code=process.exit_code,
        reason=process.reason,
        report=heard.shard if heard is not None else None,
    )


def _vital(keeper: ProcessKeeper) -> ProcessVital:
    status, liveness = keeper.status(), keeper.liveness
    if liveness is None or status.state not in (ProcessState.STARTING, ProcessState.RUNNING):
        return ProcessVital(keeper.name, None)
    return ProcessVital(keeper.name, status.pid, liveness.beats, liveness.is_turning)
