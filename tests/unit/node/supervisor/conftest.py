"""Shards' processes that are none: a test decides when one speaks, hangs and ends."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.node.query.queries import QueryUnavailable
from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Phase, Status
from strandline.node.supervisor.child import LastWords, LaunchFailed
from strandline.node.supervisor.crew import Crew
from strandline.node.supervisor.keeper import KeepingRules, ShardKeeper
from strandline.node.supervisor.restarting import RestartPolicy
from strandline.node.supervisor.standing import ShardStanding

RULES = KeepingRules(RestartPolicy(restarts=3, window_s=600.0), hang_after_s=60.0, stop_timeout_s=30.0)


@dataclass(eq=False)
class FakeChild:
    """A process. `deaf` ones don't end when asked; `mute` ones don't answer; `busy` ones use CPU."""

    shard: int
    pid: int
    born: float
    after_fencing: bool
    code: int | None = None
    words: LastWords = field(default_factory=LastWords)
    deaf: bool = False
    mute: bool = False
    busy: bool = False
    phase: Phase | None = None
    turning: bool = True
    turns: int = 0
    cpu: float = 0.0
    terminated_at: float | None = None
    killed_at: float | None = None
    now: Callable[[], float] = field(default=lambda: 0.0, repr=False)

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.terminated_at = self.now()
        if not self.deaf and self.code is None:
            self.code = 0

    def kill(self) -> None:
        self.killed_at = self.now()
        if self.code is None:
            self.code = -9

    def cpu_seconds(self) -> float:
        return self.cpu

    def last_words(self) -> LastWords:
        return self.words

    def report(self) -> ShardReport:
        status = Status(phase=self.phase or Phase.ACQUIRING, turns=self.turns)
        return ShardReport(status, ProcessFigures(self.pid, self.cpu, 0, 0))


class World:
    """A crew of fake processes on a clock that the test moves."""

    def __init__(self, rules: KeepingRules = RULES) -> None:
        self.clock = ManualClock()
        self.launched: list[FakeChild] = []
        self.no_launch = False
        self.rules = rules
        self.crew: Crew = Crew(self._keeper, rules, self.clock)

    def serve(self, *shards: int) -> None:
        self.crew.serve({shard: FakeLink(self, shard) for shard in shards})

    def launch(self, shard: int, _socket: Path, *, after_fencing: bool) -> FakeChild:
        if self.no_launch:
            raise LaunchFailed("a process can't be started: Cannot allocate memory")
        now = self.clock.monotonic
        child = FakeChild(shard, 100 + len(self.launched), now(), after_fencing, now=now)
        self.launched.append(child)
        return child

    def pass_time(self, seconds: float, step: float = 0.5) -> None:
        """Look again and again for so long; whoever lives turns its loop and works meanwhile."""
        until = self.clock.monotonic() + seconds
        self.crew.look()
        while self.clock.monotonic() < until:
            self.clock.sleep(min(step, until - self.clock.monotonic()))
            for child in self.launched:
                if child.code is None:
                    child.turns += child.turning and child.phase is not None
                    child.cpu += step * 0.5 * child.busy
            self.crew.look()

    def child(self, shard: int = 0) -> FakeChild:
        """The newest process of a shard."""
        return [child for child in self.launched if child.shard == shard][-1]

    def starts(self, shard: int = 0) -> list[float]:
        return [child.born for child in self.launched if child.shard == shard]

    def standing(self, shard: int = 0) -> ShardStanding:
        (found,) = [one for one in self.crew.standings() if one.shard == shard]
        return found

    def activate(self, shard: int = 0) -> FakeChild:
        child = self.child(shard)
        child.phase = Phase.ACTIVE
        self.crew.look()
        return child

    def end(self, code: int, shard: int = 0, words: LastWords | None = None) -> None:
        child = self.child(shard)
        child.code, child.words = code, words or LastWords()
        self.crew.look()

    def _keeper(self, shard: int, link: "FakeLink", rules: KeepingRules) -> ShardKeeper:
        socket = Path(f"shard-{shard}.sock")
        return ShardKeeper(shard, self, link, socket=socket, rules=rules, clock=self.clock, chance=lambda: 0.0)


class FakeLink:
    """Answers for whichever process of the shard is the newest, once it has a phase."""

    def __init__(self, world: World, shard: int) -> None:
        self.world, self.shard, self.asked = world, shard, 0

    def report(self, _timeout: float) -> ShardReport:
        self.asked += 1
        child = self.world.child(self.shard)
        if child.mute or child.phase is None or child.code is not None:
            raise QueryUnavailable(f"shard {self.shard} is not running")
        return child.report()

    def close(self) -> None:
        pass


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(scope="session")
def world_of() -> type[World]:
    return World
