"""All shards of a node: the keepers of their processes, looked after one by one. No thread and no sleep in it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic

import structlog

from strandline.clock import Clock
from strandline.node.supervisor.keeper import KeepingRules, ShardKeeper
from strandline.node.supervisor.links import Link
from strandline.node.supervisor.standing import ProcessState, ShardStanding

_LOG = structlog.get_logger(__name__)
# After a longer pause between two looks it was we who stood still, and perhaps the machine.
_LONGEST_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True)
class ShardVital:
    """A shard's signs of life, for whoever watches the watcher. `beats` rises with each; `reads` says whether its loop
    should be turning; `pid` tells one process from the next.
    """

    shard: int
    pid: int | None
    beats: int = 0
    reads: bool = False


class Crew(Generic[Link]):
    """The keepers, by shard. All calls come from one thread."""

    def __init__(
        self, keeper_of: Callable[[int, Link, KeepingRules], ShardKeeper], rules: KeepingRules, clock: Clock
    ) -> None:
        self._keeper_of, self._rules, self._clock = keeper_of, rules, clock
        self._looked = clock.monotonic()
        self._keepers: dict[int, ShardKeeper] = {}
        self._left: list[ShardKeeper] = []

    def serve(self, links: Mapping[int, Link]) -> None:
        """These shards from now on: new ones are started, others asked to end."""
        for shard in sorted(self._keepers.keys() - links.keys()):
            _LOG.info("shard is no longer served here", shard=shard)
            keeper = self._keepers.pop(shard)
            keeper.leave()
            self._left.append(keeper)
        for shard in sorted(links.keys() - self._keepers.keys()):
            self._keepers[shard] = self._keeper_of(shard, links[shard], self._rules)

    def follow(self, rules: KeepingRules) -> None:
        """Other rules from now on."""
        self._rules = rules
        for keeper in self._all():
            keeper.rules = rules

    def look(self) -> None:
        """Look at each."""
        # Since the end of the last look: the looks themselves may wait for shards that don't answer.
        stood_still = self._clock.monotonic() - self._looked
        for keeper in self._all():
            if stood_still > _LONGEST_PAUSE_S:
                keeper.excuse(stood_still)
            keeper.look()
        self._looked = self._clock.monotonic()
        # One that is served again meanwhile waits for its folder by itself: a second process would find it in use.
        self._left = [keeper for keeper in self._left if not keeper.is_gone]

    def restart(self, shard: int) -> None:
        """A new process for a shard, if it is served."""
        if shard in self._keepers:
            self._keepers[shard].restart()

    def revive(self) -> None:
        """Start all that are down."""
        for keeper in self._keepers.values():
            keeper.revive()

    def leave(self) -> None:
        """Ask all to end, at the same time."""
        for keeper in self._all():
            keeper.leave()

    def kill(self) -> None:
        """End all at once."""
        for keeper in self._all():
            keeper.kill()

    @property
    def is_gone(self) -> bool:
        """Whether all were asked to end, and have."""
        return all(keeper.is_gone for keeper in self._all())

    def standings(self) -> tuple[ShardStanding, ...]:
        """In the order of their numbers."""
        return tuple(self._keepers[shard].standing() for shard in sorted(self._keepers))

    def vitals(self) -> tuple[ShardVital, ...]:
        """The same for their signs of life."""
        return tuple(_vital(self._keepers[shard]) for shard in sorted(self._keepers))

    def _all(self) -> Iterable[ShardKeeper]:
        return (*self._keepers.values(), *self._left)


def _vital(keeper: ShardKeeper) -> ShardVital:
    standing, pulse = keeper.standing(), keeper.pulse
    if pulse is None or standing.state not in (ProcessState.STARTING, ProcessState.RUNNING):
        return ShardVital(keeper.shard, None)
    return ShardVital(keeper.shard, standing.pid, pulse.beats, pulse.reads)
