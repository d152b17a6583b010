"""Keeps one child process running: starts it, checks that it is alive, and restarts it when it ends.

The same code keeps shards, the front and the replay worker; a `Role` has what differs. It has no thread and never
sleeps: its owner calls `check` repeatedly, and all other methods from the same thread.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from strandline.clock import Clock
from strandline.disk import is_nearly_full
from strandline.errors import ExitCode, Retryable, StrandlineError
from strandline.node.exit_reason import ExitReason
from strandline.node.settings.http_sections import NodeSettings
from strandline.node.status.processes import ProcessState, ProcessStatus
from strandline.node.supervisor.child import Child
from strandline.node.supervisor.child_report import ChildReport
from strandline.node.supervisor.liveness import Liveness, Observation, Stage
from strandline.node.supervisor.restarting import (
    ProcessEnd,
    RestartHistory,
    RestartPolicy,
    StayDown,
    decide,
    describe_end,
)
from strandline.node.supervisor.role import Role

_LOG = structlog.get_logger(__name__)
REPORT_TIMEOUT_S = 0.5
# After a report that did not arrive in time: each attempt makes the other children wait.
_REPORT_RETRY_S = 2.0
# Before another start of a worker that exited without work although jobs are open.
IDLE_PAUSE_S = 10.0


@dataclass(frozen=True, slots=True)
class KeeperSettings:
    """The settings that concern child processes."""

    restarting: RestartPolicy
    hang_after_s: float
    stop_timeout_s: float

    @classmethod
    def of(cls, settings: NodeSettings) -> "KeeperSettings":
        """The settings in `[node]`."""
        return cls(RestartPolicy.of(settings), settings.hang_after.seconds, settings.stop_timeout.seconds)


@dataclass(slots=True)
class _Run:
    """One process, from its start to its end."""

    child: Child
    liveness: Liveness
    report: ChildReport | None = None
    active_since: float | None = None
    next_report_at: float = float("-inf")
    kill_at: float | None = None
    killed: bool = False
    why_killed: str = ""
    report_error: str = ""


class ProcessKeeper:
    """The current process of a child and the history of its restarts."""

    def __init__(
        self, role: Role, settings: KeeperSettings, clock: Clock, *, jitter: Callable[[], float] = random.random
    ) -> None:
        """The first `check` starts the process. A child on demand is started by the first one after `want(True)`."""
        self.role, self.settings = role, settings
        self._clock, self._jitter = clock, jitter
        self._run: _Run | None = None
        self._history = RestartHistory()
        self._start_at: float | None = clock.monotonic()
        self._wanted = not role.on_demand
        self._stopping = self._restart_requested = False
        self._restarts = 0
        self._is_restart = False
        self._exit_code: int | None = None
        self._reason = ""
        self._full_disk = ""

    @property
    def name(self) -> str:
        """The name of the process in the log and in status texts."""
        return self.role.name

    @property
    def has_stopped(self) -> bool:
        """Whether `stop` was called and the process has ended."""
        return self._stopping and self._run is None

    @property
    def starts_in_s(self) -> float:
        """The time until the next start; infinite if none is due."""
        if self._run is not None or not self._wanted or self._start_at is None:
            return float("inf")
        return max(0.0, self._start_at - self._clock.monotonic())

    @property
    def liveness(self) -> Liveness | None:
        """The liveness of the current process."""
        return self._run.liveness if self._run is not None else None

    @property
    def report(self) -> ChildReport | None:
        """The last report of the current process."""
        return self._run.report if self._run is not None else None

    def check(self) -> None:
        """Check the process, and start or kill it if that is due."""
        now = self._clock.monotonic()
        if self._run is not None:
            self._watch(self._run, now)
        if self._run is None and self._wanted and self._start_at is not None and now >= self._start_at:
            if self.role.may_start() and not self._waits_for_disk():
                self._start(now)
            else:
                self._start_at = now + IDLE_PAUSE_S

    def discount_pause(self, seconds: float) -> None:
        """Exclude a time in which the supervisor itself was suspended from the process's silence."""
        if self._run is not None:
            self._run.liveness = self._run.liveness.discounting(seconds)

    def want(self, wanted: bool) -> None:
        """Set whether a child on demand is needed. It exits by itself when it is not. Its failures are forgotten then,
        so that it is started at once when it is needed again.
        """
        if self._wanted and not wanted and self._run is None and not self._stopping:
            self._reset()
        self._wanted = wanted

    def stop(self, kill_at: float | None = None) -> None:
        """Terminate the process and start no other. It is killed at `kill_at`, by default after `stop_timeout`."""
        self._stopping, self._start_at = True, None
        self._terminate("it did not stop within node.stop_timeout", kill_at)

    def kill(self) -> None:
        """Kill the process. It is handled like any other end."""
        if self._run is not None:
            self._run.child.kill()

    def restart(self) -> None:
        """An operator's request: start a new process now, and forget earlier failures. A fenced shard still does not
        take over from a live owner.
        """
        if self._stopping:
            return
        self._history, self._full_disk = RestartHistory(), ""
        self._is_restart = True
        if self._run is not None:
            self._restart_requested = True
            self._terminate("it did not stop within node.stop_timeout for its restart")
        else:
            self._start_at = self._clock.monotonic()

    def restart_if_down(self) -> None:
        """After a reload of the settings: restart it if it is down, or waits because its settings were invalid."""
        if self._run is None and (self._start_at is None or self._exit_code == ExitCode.USAGE):
            self.restart()

    def status(self) -> ProcessStatus:
        """The status as of the last `check`."""
        run = self._run
        return ProcessStatus(
            self.name,
            self._state(),
            pid=run.child.pid if run is not None else None,
            restarts=self._restarts,
            starts_in_s=self.starts_in_s if self.starts_in_s < float("inf") else None,
            exit_code=self._exit_code,
            reason=self._reason if run is None else run.why_killed if run.killed else "",
            process=run.report.process if run is not None and run.report is not None else None,
        )

    def _state(self) -> ProcessState:
        if self._run is not None:
            return ProcessState.RUNNING if self._run.report is not None else ProcessState.STARTING
        if self._stopping or not self._wanted:
            return ProcessState.STOPPED
        return ProcessState.WAITING if self._start_at is not None else ProcessState.DOWN

    def _waits_for_disk(self) -> bool:
        """Whether the disk that ended the last process is still full: a new process would fail in the same way."""
        if self._full_disk and not is_nearly_full(Path(self._full_disk)):
            _LOG.info("the disk has free space again", process=self.name, path=self._full_disk)
            self._full_disk = ""
        return bool(self._full_disk)

    def _start(self, now: float) -> None:
        self._restarts += self._is_restart
        self._is_restart = True
        try:
            child = self.role.launch()
        except Retryable as error:
            reason = ExitReason(error.message, error.remedy, retryable=True)
            self._follow(ProcessEnd(now, ExitCode.FAILED, retryable=True), reason, "could not be started")
            return
        _LOG.info("process started", process=self.name, pid=child.pid, restarts=self._restarts)
        self._start_at, self._run = None, _Run(child, Liveness(now))

    def _watch(self, run: _Run, now: float) -> None:
        code = run.child.poll()
        if code is not None:
            self._ended(run, code, now)
            return
        report = self._fetch_report(run, now)
        if report is not None:
            run.report = report
            since = now if run.active_since is None else run.active_since
            run.active_since = since if report.stage is Stage.STEADY else None
        cpu_seconds = run.child.cpu_seconds()
        observed = (
            Observation(report.stage, report.progress, cpu_seconds)
            if report is not None
            else Observation(cpu_seconds=cpu_seconds)
        )
        run.liveness = run.liveness.after(observed, now)
        if run.kill_at is None and run.liveness.hangs(now, self.settings.hang_after_s):
            run.kill_at = now
            what = run.report.stuck if run.report is not None and run.report.stuck else "no heartbeat"
            silent = f"{what} for {run.liveness.silent_for(now):.0f} s, see node.hang_after"
            run.why_killed = f"{silent}; {run.report_error}" if run.report_error else silent
        if run.kill_at is not None and now >= run.kill_at and not run.killed:
            run.killed = True
            last = run.report.progress[0] if run.report is not None else "nothing yet"
            _LOG.error("process is killed", process=self.name, pid=run.child.pid, reported=last, why=run.why_killed)
            run.child.kill()

    def _fetch_report(self, run: _Run, now: float) -> ChildReport | None:
        if now < run.next_report_at or self._stopping:
            return None
        try:
            report = self.role.fetch_report(REPORT_TIMEOUT_S)
        except (StrandlineError, OSError) as error:
            # Before the first report, the connection is refused at once, which is expected.
            run.report_error = str(error)
            if run.report is not None:
                run.next_report_at = self._clock.monotonic() + _REPORT_RETRY_S
            return None
        run.report_error = ""
        # The report may still be the previous process's.
        return report if report.process.pid == run.child.pid else None

    def _terminate(self, if_late: str, kill_at: float | None = None) -> None:
        run = self._run
        if run is None:
            return
        latest = self._clock.monotonic() + self.settings.stop_timeout_s if kill_at is None else kill_at
        if run.kill_at is None:
            run.kill_at, run.why_killed = latest, if_late
            run.child.terminate()
        else:
            run.kill_at = min(run.kill_at, latest)

    def _ended(self, run: _Run, code: int, now: float) -> None:
        self._run, self._exit_code = None, code
        self.role.close()
        reason = run.child.exit_reason()
        fenced = run.report is not None and run.report.fenced
        if self._stopping:
            self._reason = ""
            _LOG.info("process stopped", process=self.name, exit_code=code)
        elif self._restart_requested:
            self._restart_requested, self._start_at, self._reason = False, now, "an operator asked for a restart"
            _LOG.info("process stopped for its restart", process=self.name, exit_code=code)
        elif self.role.on_demand and code == ExitCode.OK:
            _LOG.info("process has nothing left to do", process=self.name)
            self._reset()
            self._start_at = now + IDLE_PAUSE_S
        else:
            active = now - run.active_since if run.active_since is not None else 0.0
            how = f"{describe_end(code)} ({run.why_killed})" if run.killed else describe_end(code)
            self._follow(ProcessEnd(now, code, active, reason.retryable, fenced), reason, how)

    def _reset(self) -> None:
        """Forget earlier failures, and make the next start due."""
        self._history, self._reason, self._full_disk = RestartHistory(), "", ""
        self._start_at, self._is_restart = self._clock.monotonic(), False

    def _follow(self, end: ProcessEnd, reason: ExitReason, how: str) -> None:
        """Decide what follows an unexpected end, and log it."""
        self._exit_code, self._full_disk = end.code, reason.full_disk
        self._reason = f"{how}: {reason}" if reason.message else how
        decision = decide(self.role.policy(self.settings.restarting), self._history, end, self._jitter())
        facts = {
            "process": self.name,
            "exit_code": end.code,
            "how": how,
            "error": reason.message,
            "remedy": reason.remedy,
        }
        if isinstance(decision, StayDown):
            self._start_at = None
            self._reason = f"{self._reason} - {decision.why}"
            if self.role.remedy:
                self._reason = f"{self._reason}. {self.role.remedy}"
            _LOG.error("process is down", why=decision.why, **facts)
            return
        self._start_at, self._history = decision.at, decision.history
        _LOG.error("process ended", again_in_s=round(decision.at - end.at, 1), **facts)
