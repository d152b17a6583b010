"""Keeps one child process: starts it, checks that it is alive, and starts it again when it ends.

The same code keeps shards, the front and the replay worker; what differs between them is a `Role`. No thread and no
sleep in it: the owner of a keeper calls `look` again and again, and everything else between two looks, from one thread.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from strandline.clock import Clock
from strandline.disk import lacks_room
from strandline.errors import ExitCode, Retryable, StrandlineError
from strandline.node.exit_reason import ExitReason
from strandline.node.settings.http_sections import NodeSettings
from strandline.node.status.processes import ProcessState, ProcessStatus
from strandline.node.supervisor.child import Child
from strandline.node.supervisor.heard import Heard
from strandline.node.supervisor.liveness import Liveness, Signs, Stage
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
# After a question without an answer the child is left alone for this long: others wait behind it.
_ASK_AGAIN_S = 2.0
# A child that found nothing to do, though it is wanted, looks again after this long.
QUIET_PAUSE_S = 10.0


@dataclass(frozen=True, slots=True)
class KeepingRules:
    """What the settings say about child processes."""

    restarting: RestartPolicy
    hang_after_s: float
    stop_timeout_s: float

    @classmethod
    def of(cls, settings: NodeSettings) -> "KeepingRules":
        """As they are written."""
        return cls(RestartPolicy.of(settings), settings.hang_after.seconds, settings.stop_timeout.seconds)


@dataclass(slots=True)
class _Run:
    """One process from its start on."""

    child: Child
    liveness: Liveness
    heard: Heard | None = None
    active_since: float | None = None
    ask_not_before: float = float("-inf")
    kill_at: float | None = None
    killed: bool = False
    why_killed: str = ""
    unheard: str = ""


class ProcessKeeper:
    """One child process and all those before it."""

    def __init__(
        self, role: Role, rules: KeepingRules, clock: Clock, *, chance: Callable[[], float] = random.random
    ) -> None:
        """Nothing is started before the first look; one that works on demand not before it is wanted."""
        self.role, self.rules = role, rules
        self._clock, self._chance = clock, chance
        self._run: _Run | None = None
        self._history = RestartHistory()
        self._start_at: float | None = clock.monotonic()
        self._wanted = not role.on_demand
        self._leaving = self._again_at_once = False
        self._restarts = 0
        self._is_restart = False
        self._exit_code: int | None = None
        self._reason = ""
        self._full_disk = ""

    @property
    def name(self) -> str:
        """What the process is called in the log and in status texts."""
        return self.role.name

    @property
    def is_gone(self) -> bool:
        """Whether it was told to leave, and has."""
        return self._leaving and self._run is None

    @property
    def starts_in_s(self) -> float:
        """How long it is until a process is started; infinite if none is to be."""
        if self._run is not None or not self._wanted or self._start_at is None:
            return float("inf")
        return max(0.0, self._start_at - self._clock.monotonic())

    @property
    def liveness(self) -> Liveness | None:
        """The process' signs of life, while there is one."""
        return self._run.liveness if self._run is not None else None

    @property
    def heard(self) -> Heard | None:
        """What the process last reported."""
        return self._run.heard if self._run is not None else None

    def look(self) -> None:
        """See how the process is, and do what is due."""
        now = self._clock.monotonic()
        if self._run is not None:
            self._watch(self._run, now)
        if self._run is None and self._wanted and self._start_at is not None and now >= self._start_at:
            if self.role.may_start() and not self._waits_for_room():
                self._start(now)
            else:
                self._start_at = now + QUIET_PAUSE_S

    def excuse(self, seconds: float) -> None:
        """Don't hold a time against the process in which nobody looked."""
        if self._run is not None:
            self._run.liveness = self._run.liveness.excused(seconds)

    def want(self, wanted: bool) -> None:
        """Whether there is something to do for one that works on demand. When that is over the process ends by itself;
        its failures are forgotten, and the next demand is met at once.
        """
        if self._wanted and not wanted and self._run is None and not self._leaving:
            self._forget()
        self._wanted = wanted

    def leave(self, kill_at: float | None = None) -> None:
        """Ask the process to end, and start no other. It is killed at a time, or after `stop_timeout`."""
        self._leaving, self._start_at = True, None
        self._ask_to_end("it did not end in time when the node stopped", kill_at)

    def kill(self) -> None:
        """End the process at once; what becomes of it then is as for any end."""
        if self._run is not None:
            self._run.child.kill()

    def restart(self) -> None:
        """A person wants a new process: now, whatever became of those before, whose number no longer counts. A shard
        that was fenced still leaves itself to an owner that lives.
        """
        if self._leaving:
            return
        self._history, self._full_disk = RestartHistory(), ""
        self._is_restart = True
        if self._run is not None:
            self._again_at_once = True
            self._ask_to_end("it did not end in time for its restart")
        else:
            self._start_at = self._clock.monotonic()

    def revive(self) -> None:
        """Start it if it is down, or waits because its settings were wrong: they have been read again."""
        if self._run is None and (self._start_at is None or self._exit_code == ExitCode.USAGE):
            self.restart()

    def status(self) -> ProcessStatus:
        """As of the last look."""
        run = self._run
        return ProcessStatus(
            self.name,
            self._state(),
            pid=run.child.pid if run is not None else None,
            restarts=self._restarts,
            starts_in_s=self.starts_in_s if self.starts_in_s < float("inf") else None,
            exit_code=self._exit_code,
            reason=self._reason if run is None else run.why_killed if run.killed else "",
            process=run.heard.process if run is not None and run.heard is not None else None,
        )

    def _state(self) -> ProcessState:
        if self._run is not None:
            return ProcessState.RUNNING if self._run.heard is not None else ProcessState.STARTING
        if self._leaving or not self._wanted:
            return ProcessState.STOPPED
        return ProcessState.WAITING if self._start_at is not None else ProcessState.DOWN

    def _waits_for_room(self) -> bool:
        """Whether the disk that ended the process before is still full: another one would end in the same way."""
        if self._full_disk and not lacks_room(Path(self._full_disk)):
            _LOG.info("there is room on the disk again", process=self.name, path=self._full_disk)
            self._full_disk = ""
        return bool(self._full_disk)

    def _start(self, now: float) -> None:
        self._restarts += self._is_restart
        self._is_restart = True
        try:
            child = self.role.launch()
        except Retryable as error:
            reason = ExitReason(error.message, error.remedy, retryable=True)
            self._follow(ProcessEnd(now, ExitCode.FAILED, passing=True), reason, "could not be started")
            return
        _LOG.info("process started", process=self.name, pid=child.pid, restarts=self._restarts)
        self._start_at, self._run = None, _Run(child, Liveness(now))

    def _watch(self, run: _Run, now: float) -> None:
        code = run.child.poll()
        if code is not None:
            self._ended(run, code, now)
            return
        heard = self._ask(run, now)
        if heard is not None:
            run.heard = heard
            since = now if run.active_since is None else run.active_since
            run.active_since = since if heard.stage is Stage.STEADY else None
        cpu_seconds = run.child.cpu_seconds()
        signs = Signs(heard.stage, heard.mark, cpu_seconds) if heard is not None else Signs(cpu_seconds=cpu_seconds)
        run.liveness = run.liveness.after(signs, now)
        if run.kill_at is None and run.liveness.is_lost(now, self.rules.hang_after_s):
            run.kill_at = now
            what = run.heard.stuck if run.heard is not None and run.heard.stuck else "it did nothing"
            silent = f"{what} for {run.liveness.silent_for(now):.0f} s, see node.hang_after"
            run.why_killed = f"{silent}; {run.unheard}" if run.unheard else silent
        if run.kill_at is not None and now >= run.kill_at and not run.killed:
            run.killed = True
            last = run.heard.mark[0] if run.heard is not None else "nothing yet"
            _LOG.error("process is killed", process=self.name, pid=run.child.pid, reported=last, why=run.why_killed)
            run.child.kill()

    def _ask(self, run: _Run, now: float) -> Heard | None:
        if now < run.ask_not_before or self._leaving:
            return None
        try:
            heard = self.role.hear(REPORT_TIMEOUT_S)
        except (StrandlineError, OSError) as error:
            # Before the first report a refusal comes at once, and is no news.
            run.unheard = str(error)
            if run.heard is not None:
                run.ask_not_before = self._clock.monotonic() + _ASK_AGAIN_S
            return None
        run.unheard = ""
        # The process before it may have answered in its last moment.
        return heard if heard.process.pid == run.child.pid else None

    def _ask_to_end(self, if_late: str, kill_at: float | None = None) -> None:
        run = self._run
        if run is None:
            return
        latest = self._clock.monotonic() + self.rules.stop_timeout_s if kill_at is None else kill_at
        if run.kill_at is None:
            run.kill_at, run.why_killed = latest, if_late
            run.child.terminate()
        else:
            run.kill_at = min(run.kill_at, latest)

    def _ended(self, run: _Run, code: int, now: float) -> None:
        self._run, self._exit_code = None, code
        self.role.close()
        reason = run.child.exit_reason()
        fenced = run.heard is not None and run.heard.fenced
        if self._leaving:
            self._reason = ""
            _LOG.info("process stopped", process=self.name, exit_code=code)
        elif self._again_at_once:
            self._again_at_once, self._start_at, self._reason = False, now, "a person wants it started again"
            _LOG.info("process stopped for its restart", process=self.name, exit_code=code)
        elif self.role.on_demand and code == ExitCode.OK:
            _LOG.info("process has nothing left to do", process=self.name)
            self._forget()
            self._start_at = now + QUIET_PAUSE_S
        else:
            active = now - run.active_since if run.active_since is not None else 0.0
            how = f"{describe_end(code)} ({run.why_killed})" if run.killed else describe_end(code)
            self._follow(ProcessEnd(now, code, active, reason.retryable, fenced), reason, how)

    def _forget(self) -> None:
        """What happened before no longer counts."""
        self._history, self._reason, self._full_disk = RestartHistory(), "", ""
        self._start_at, self._is_restart = self._clock.monotonic(), False

    def _follow(self, end: ProcessEnd, reason: ExitReason, how: str) -> None:
        """Do what follows from an end that nobody asked for."""
        self._exit_code, self._full_disk = end.code, reason.full_disk
        self._reason = f"{how}: {reason}" if reason.message else how
        decision = decide(self.role.policy(self.rules.restarting), self._history, end, self._chance())
        facts = {
            "process": self.name,
            "exit_code": end.code,
            "how": how,
            "said": reason.message,
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
