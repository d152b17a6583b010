"""Keeps one shard's process: starts it, looks whether it lives, and starts it again when it ends.

No thread and no sleep in it: whoever has keepers calls `look` again and again, and all else between two looks, from one
thread.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from strandline.clock import Clock
from strandline.errors import ExitCode, Retryable, StrandlineError
from strandline.node.settings.http_sections import NodeSettings
from strandline.node.shard.report import ShardReport
from strandline.node.shard.status import Phase
from strandline.node.supervisor.child import LastWords, Launcher, ShardChild
from strandline.node.supervisor.links import ShardLink
from strandline.node.supervisor.pulse import Pulse, Signs
from strandline.node.supervisor.restarting import (
    ProcessEnd,
    RestartHistory,
    RestartPolicy,
    StayDown,
    decide,
    describe_end,
)
from strandline.node.supervisor.standing import ProcessState, ShardStanding

_LOG = structlog.get_logger(__name__)
REPORT_TIMEOUT_S = 0.5
# After a question without an answer the shard is left alone for so long: others wait behind it.
_ASK_AGAIN_S = 2.0
# Phases in which the shard has been taken.
_OWNS = (Phase.RECOVERING_INDEX, Phase.REPLAYING, Phase.CATCHING_UP, Phase.ACTIVE)


@dataclass(frozen=True, slots=True)
class KeepingRules:
    """What the settings say about shards' processes."""

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

    child: ShardChild
    pulse: Pulse
    report: ShardReport | None = None
    active_since: float | None = None
    ask_not_before: float = float("-inf")
    kill_at: float | None = None
    killed: bool = False
    why_killed: str = ""
    unheard: str = ""


class ShardKeeper:
    """One shard's process and all those before it."""

    def __init__(
        self,
        shard: int,
        launcher: Launcher,
        link: ShardLink,
        *,
        socket: Path,
        rules: KeepingRules,
        clock: Clock,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Nothing is started before the first look."""
        self.shard, self.rules, self.link = shard, rules, link
        self._launcher, self._socket, self._clock, self._chance = launcher, socket, clock, chance
        self._run: _Run | None = None
        self._history = RestartHistory()
        self._start_at: float | None = clock.monotonic()
        self._after_fencing = False
        self._leaving = self._again_at_once = False
        self._starts = 0
        self._exit_code: int | None = None
        self._reason = ""

    @property
    def is_gone(self) -> bool:
        """Whether it was told to leave, and has."""
        return self._leaving and self._run is None

    @property
    def pulse(self) -> Pulse | None:
        """The process' signs of life, while there is one."""
        return self._run.pulse if self._run is not None else None

    def look(self) -> None:
        """See how the process is, and do what is due."""
        now = self._clock.monotonic()
        if self._run is not None:
            self._watch(self._run, now)
        if self._run is None and self._start_at is not None and now >= self._start_at:
            self._start(now)

    def excuse(self, seconds: float) -> None:
        """Don't hold so many seconds against the process in which nobody looked."""
        if self._run is not None:
            self._run.pulse = self._run.pulse.excused(seconds)

    def leave(self) -> None:
        """Ask the process to end, and start no other. After `stop_timeout` it is killed."""
        self._leaving, self._start_at = True, None
        self._ask_to_end("it did not end in time when the node stopped")

    def kill(self) -> None:
        """End the process at once; what becomes of it then is as for any end."""
        if self._run is not None:
            self._run.child.kill()

    def restart(self) -> None:
        """A person wants a new process: now, whatever became of those before, whose number counts no more. One that
        was fenced still leaves the shard to an owner that lives.
        """
        if self._leaving:
            return
        self._history = RestartHistory()
        if self._run is not None:
            self._again_at_once = True
            self._ask_to_end("it did not end in time for its restart")
        else:
            self._start_at = self._clock.monotonic()

    def revive(self) -> None:
        """Start it if it is down."""
        if self._run is None and self._start_at is None:
            self.restart()

    def standing(self) -> ShardStanding:
        """As of the last look."""
        run = self._run
        return ShardStanding(
            self.shard,
            self._state(),
            pid=run.child.pid if run is not None else None,
            restarts=max(0, self._starts - 1),
            starts_in_s=self._pause() if run is None else None,
            exit_code=self._exit_code,
            reason=self._reason if run is None else run.why_killed if run.killed else "",
            report=run.report if run is not None else None,
        )

    def _state(self) -> ProcessState:
        if self._run is not None:
            return ProcessState.RUNNING if self._run.report is not None else ProcessState.STARTING
        if self._leaving:
            return ProcessState.STOPPED
        return ProcessState.WAITING if self._start_at is not None else ProcessState.DOWN

    def _pause(self) -> float | None:
        return max(0.0, self._start_at - self._clock.monotonic()) if self._start_at is not None else None

    def _start(self, now: float) -> None:
        self._starts += 1
        try:
            child = self._launcher.launch(self.shard, self._socket, after_fencing=self._after_fencing)
        except Retryable as error:
            words = LastWords(error.message, error.remedy, passing=True)
            self._follow(ProcessEnd(now, ExitCode.FAILED, passing=True), words, "could not be started")
            return
        _LOG.info("shard started", shard=self.shard, pid=child.pid, start=self._starts)
        self._start_at, self._run = None, _Run(child, Pulse(now))

    def _watch(self, run: _Run, now: float) -> None:
        code = run.child.poll()
        if code is not None:
            self._ended(run, code, now)
            return
        report = self._ask(run, now)
        if report is not None:
            run.report, phase = report, report.status.phase
            since = now if run.active_since is None else run.active_since
            run.active_since = since if phase is Phase.ACTIVE else None
            if phase in _OWNS:
                self._after_fencing = False
        run.pulse = run.pulse.felt(Signs.of(report, run.child.cpu_seconds()), now)
        if run.kill_at is None and run.pulse.is_lost(now, self.rules.hang_after_s):
            run.kill_at = now
            silent = f"it did nothing for {run.pulse.silent_for(now):.0f} s, see node.hang_after"
            run.why_killed = f"{silent}; {run.unheard}" if run.unheard else silent
        if run.kill_at is not None and now >= run.kill_at and not run.killed:
            run.killed = True
            told = run.report.status.phase.value if run.report is not None else "nothing yet"
            _LOG.error("shard is killed", shard=self.shard, pid=run.child.pid, told=told, why=run.why_killed)
            run.child.kill()

    def _ask(self, run: _Run, now: float) -> ShardReport | None:
        if now < run.ask_not_before or self._leaving:
            return None
        try:
            report = self.link.report(REPORT_TIMEOUT_S)
        except (StrandlineError, OSError, ValueError, TypeError, KeyError) as error:
            # Whatever it is: no answer, or one that is none (a process of another version, after an upgrade). Before
            # its first word a refusal comes at once, and is no news.
            run.unheard = str(error)
            if run.report is not None:
                run.ask_not_before = self._clock.monotonic() + _ASK_AGAIN_S
            return None
        run.unheard = ""
        # The process before it may have answered in its last moment.
        return report if report.process.pid == run.child.pid else None

    def _ask_to_end(self, if_late: str) -> None:
        run = self._run
        if run is None or run.kill_at is not None:
            return
        run.kill_at, run.why_killed = self._clock.monotonic() + self.rules.stop_timeout_s, if_late
        run.child.terminate()

    def _ended(self, run: _Run, code: int, now: float) -> None:
        self._run, self._exit_code = None, code
        words = run.child.last_words()
        fenced = run.report is not None and run.report.status.phase is Phase.FENCED
        if self._leaving:
            self._reason = ""
            _LOG.info("shard stopped", shard=self.shard, exit_code=code)
        elif self._again_at_once:
            self._again_at_once, self._start_at, self._reason = False, now, "a person wants it started again"
            # It may have been fenced on its way out: the other owner is not to be fenced in turn.
            self._after_fencing = self._after_fencing or fenced or code == ExitCode.FENCED
            _LOG.info("shard stopped for its restart", shard=self.shard, exit_code=code)
        else:
            active = now - run.active_since if run.active_since is not None else 0.0
            how = f"{describe_end(code)} ({run.why_killed})" if run.killed else describe_end(code)
            self._follow(ProcessEnd(now, code, active, words.passing, fenced), words, how)

    def _follow(self, end: ProcessEnd, words: LastWords, how: str) -> None:
        """Do what follows from an end that nobody asked for."""
        self._exit_code = end.code
        self._reason = f"{how}: {words}" if words.message else how
        decision = decide(self.rules.restarting, self._history, end, self._chance())
        facts = {"shard": self.shard, "exit_code": end.code, "how": how, "said": words.message, "remedy": words.remedy}
        if isinstance(decision, StayDown):
            self._start_at = None
            self._reason = f"{self._reason} - {decision.why}"
            _LOG.error("shard is down", why=decision.why, **facts)
            return
        self._start_at, self._history = decision.at, decision.history
        # Once fenced it stays so until the shard was taken again, whatever else ends a start before that.
        self._after_fencing = self._after_fencing or decision.after_fencing
        _LOG.error("shard ended", again_in_s=round(decision.at - end.at, 1), **facts)
