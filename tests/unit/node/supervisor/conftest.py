"""Fake child processes: a test decides when one reports, hangs and ends."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.node.exit_reason import ExitReason
from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Phase, Status
from strandline.node.status.processes import FRONT, WORKER, ProcessStatus, ShardProcessStatus
from strandline.node.supervisor import role as roles
from strandline.node.supervisor.child import LaunchFailed
from strandline.node.supervisor.child_report import ChildReport, child_report
from strandline.node.supervisor.keeper import KeeperSettings, ProcessKeeper
from strandline.node.supervisor.liveness import Stage
from strandline.node.supervisor.processes import NodeProcesses
from strandline.node.supervisor.report_client import NoReport
from strandline.node.supervisor.restarting import RestartPolicy
from strandline.node.supervisor.role import Role

SETTINGS = KeeperSettings(RestartPolicy(restarts=3, window_s=600.0), hang_after_s=60.0, stop_timeout_s=30.0)
Name = int | str
"""A shard's number, or the name of another process."""


@dataclass(eq=False)
class FakeChild:
    """A process that may ignore SIGTERM, be unresponsive to report requests, or use CPU (`busy`). A shard reports once
    it has a phase, other processes once `serves` is set. `jobs` are those of a shard's replay.
    """

    name: Name
    pid: int
    started_at: float
    code: int | None = None
    reason: ExitReason = field(default_factory=ExitReason)
    ignores_sigterm: bool = False
    is_unresponsive: bool = False
    busy: bool = False
    phase: Phase | None = None
    serves: bool = False
    jobs: int = 0
    iterating: bool = True
    stuck: str = ""
    turns: int = 0
    cpu: float = 0.0
    terminated_at: float | None = None
    killed_at: float | None = None
    now: Callable[[], float] = field(default=lambda: 0.0, repr=False)

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.terminated_at = self.now()
        if not self.ignores_sigterm and self.code is None:
            self.code = 0

    def kill(self) -> None:
        self.killed_at = self.now()
        if self.code is None:
            self.code = -9

    def cpu_seconds(self) -> float:
        return self.cpu

    def exit_reason(self) -> ExitReason:
        return self.reason

    @property
    def reports(self) -> bool:
        return not self.is_unresponsive and self.code is None and (self.phase is not None or self.serves)

    def report(self) -> ChildReport:
        process = ProcessFigures(self.pid, self.cpu, 0, 0)
        if self.phase is None:
            stage = Stage.STARTING if self.name == WORKER else Stage.STEADY
            return ChildReport(process, stage, (stage.value, self.turns))
        status = Status(phase=self.phase, turns=self.turns, stuck=self.stuck)
        return child_report(ShardReport(status, process, jobs={"pending": self.jobs, "done": 3}))


class World:
    """The processes of a node on a manual clock: the served shards, the front and the worker."""

    def __init__(self, settings: KeeperSettings = SETTINGS) -> None:
        self.clock = ManualClock()
        self.launched: list[FakeChild] = []
        self.launch_fails = False
        self.folder_is_locked = False
        self.settings = settings
        self.report_requests = 0
        self.fetch_report: Callable[[Name, float], ChildReport] = self._fetch_report
        self.processes = NodeProcesses(
            self.role,
            settings,
            self.clock,
            front=self._with_policy(FRONT),
            worker=self._with_policy(WORKER),
            keeper_of=lambda role, keeper_settings: ProcessKeeper(
                role, keeper_settings, self.clock, jitter=lambda: 0.0
            ),
        )

    def serve(self, *shards: int) -> None:
        self.processes.serve(shards)

    def role(self, name: Name) -> Role:
        return Role(
            f"shard {name}" if isinstance(name, int) else name,
            lambda: self.launch(name),
            lambda timeout: self.fetch_report(name, timeout),
        )

    def _with_policy(self, name: str) -> Role:
        """The real role, with this world's processes."""
        role = self.role(name)
        if name == FRONT:
            real = roles.front_role(self, Path("/run/x"), self.clock)  # type: ignore[arg-type]
        else:
            real = roles.worker_role(self, Path("/run/x"), Path("/run/x"), self.clock)  # type: ignore[arg-type]
        return replace(
            real,
            launch=role.launch,
            fetch_report=role.fetch_report,
            close=role.close,
            may_start=lambda: not self.folder_is_locked,
        )

    def launch(self, name: Name) -> FakeChild:
        if self.launch_fails:
            raise LaunchFailed("a process can't be started: Cannot allocate memory")
        now = self.clock.monotonic
        child = FakeChild(name, 100 + len(self.launched), now(), now=now, serves=name == FRONT)
        self.launched.append(child)
        return child

    def _fetch_report(self, name: Name, _timeout: float) -> ChildReport:
        self.report_requests += 1
        child = self.child(name)
        if not child.reports:
            raise NoReport(f"{name} is not running")
        return child.report()

    def check(self) -> None:
        self.processes.check()

    def pass_time(self, seconds: float, step: float = 0.5) -> None:
        """Check repeatedly for this time. Live processes iterate their loop and use CPU meanwhile."""
        until = self.clock.monotonic() + seconds
        self.check()
        while self.clock.monotonic() < until:
            self.clock.sleep(min(step, until - self.clock.monotonic()))
            for child in self.launched:
                if child.code is None:
                    child.turns += child.iterating and child.reports
                    child.cpu += step * 0.5 * child.busy
            self.check()

    def child(self, name: Name = 0) -> FakeChild:
        """The newest process of a shard, or with this name."""
        return [child for child in self.launched if child.name == name][-1]

    def starts(self, name: Name = 0) -> list[float]:
        return [child.started_at for child in self.launched if child.name == name]

    def status(self, shard: int = 0) -> ShardProcessStatus:
        (status,) = [status for status in self.processes.shards() if status.shard == shard]
        return status

    def other(self, name: str) -> ProcessStatus:
        (status,) = [status for status in self.processes.others() if status.name == name]
        return status

    def activate(self, shard: int = 0) -> FakeChild:
        child = self.child(shard)
        child.phase = Phase.ACTIVE
        self.check()
        return child

    def want_worker(self, shard: int = 0, jobs: int = 2) -> FakeChild:
        """A replaying shard with this many jobs."""
        child = self.child(shard)
        child.phase, child.jobs = Phase.REPLAYING, jobs
        self.check()
        self.check()
        return child

    def end(self, code: int, name: Name = 0, reason: ExitReason | None = None) -> None:
        child = self.child(name)
        child.code, child.reason = code, reason or ExitReason()
        self.check()


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(scope="session")
def world_of() -> type[World]:
    return World
