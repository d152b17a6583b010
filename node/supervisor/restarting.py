"""Whether a child process that has ended is started again, and when. Pure functions over what happened before.

| how it ended                           | what follows                                                              |
| -------------------------------------- | ------------------------------------------------------------------------- |
| data is lost                           | DOWN at once: another start would say the same                            |
| the settings are wrong                 | again after a minute: a file may just be on its way to be replaced        |
| fenced                                 | again after a minute and a bit; the start looks whether the owner is gone |
| something was out of reach, or full    | again after a pause; over the limit later, when the limit allows it       |
| anything else, being told to stop, too | again after a pause; over the limit DOWN                                  |

A pause doubles with each end in a row. Within any window there are at most as many restarts as the settings say; those
after a fencing don't count, since the shard is in good hands. A policy that does not give up has pauses and no limit.
"""

import signal
from dataclasses import dataclass

from strandline.errors import ExitCode
from strandline.node.settings.http_sections import NodeSettings

FENCED_PAUSE_S = 60.0
"""How long a shard is left to another owner before a start looks again whether that one is gone."""
_FENCED_JITTER_S = 15.0
# Each pause is longer by up to so much of itself, so that processes that ended together don't all come back at once.
_JITTER = 0.25


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """At most `restarts` within any `window_s`; pauses from `min_pause_s`, doubling, up to `max_pause_s`. A process
    that was active for `steady_s` begins with the shortest pause again. Without `gives_up` restarts are not counted.
    """

    restarts: int
    window_s: float
    min_pause_s: float = 1.0
    max_pause_s: float = 60.0
    steady_s: float = 60.0
    gives_up: bool = True

    @classmethod
    def of(cls, settings: NodeSettings) -> "RestartPolicy":
        """What the settings say."""
        return cls(settings.restarts, settings.restart_window.seconds)


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a process ended: when, its exit code (negative for a signal), for how long it was active at last, whether
    what ended it may pass by itself, and whether it had said that it was fenced.
    """

    at: float
    code: int
    active_s: float = 0.0
    retryable: bool = False
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class RestartHistory:
    """The times of the restarts that count, oldest first, and how many ends there were in a row."""

    restarts: tuple[float, ...] = ()
    ends_in_row: int = 0


@dataclass(frozen=True, slots=True)
class RestartAt:
    """Start it at this time; the history from then on."""

    at: float
    history: RestartHistory


@dataclass(frozen=True, slots=True)
class StayDown:
    """Don't start it again before a person says so; `why` goes behind how it ended."""

    why: str


def decide(
    policy: RestartPolicy, history: RestartHistory, end: ProcessEnd, jitter: float = 0.0
) -> RestartAt | StayDown:
    """What follows from an end. `jitter` in [0, 1) spreads the starts."""
    if end.fenced or end.code == ExitCode.FENCED:
        return RestartAt(end.at + FENCED_PAUSE_S + jitter * _FENCED_JITTER_S, history)
    if end.code == ExitCode.DATA_LOST:
        return StayDown("it is not started again before that is mended")
    if end.code == ExitCode.USAGE:
        # A settings file, or one that it names, may just be on its way to be replaced. It costs nothing to look again.
        return RestartAt(end.at + policy.max_pause_s * (1 + jitter * _JITTER), history)
    row = 1 if end.active_s >= policy.steady_s else history.ends_in_row + 1
    at = end.at + _pause(policy, row) * (1 + jitter * _JITTER)
    if not policy.gives_up:
        return RestartAt(at, RestartHistory((), row))
    counted = _within(policy, history, at)
    if len(counted) >= policy.restarts:
        if not end.retryable or not policy.restarts:
            return StayDown(_over_limit(policy))
        # So many of the newest may lie within the window, and one less before the next.
        at = counted[-policy.restarts] + policy.window_s
        counted = _within(policy, history, at)
    return RestartAt(at, RestartHistory((*counted, at), row))


def describe_end(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}"


def _pause(policy: RestartPolicy, row: int) -> float:
    # No power beyond what a float holds: a process may fail for months.
    return min(policy.max_pause_s, policy.min_pause_s * 2.0 ** min(row - 1, 60))


def _within(policy: RestartPolicy, history: RestartHistory, at: float) -> tuple[float, ...]:
    """The restarts that share a window with one at this time."""
    return tuple(restart for restart in history.restarts if restart + policy.window_s > at)


def _over_limit(policy: RestartPolicy) -> str:
    if not policy.restarts:
        return "node.restarts is 0, so it is not started again"
    times = "once" if policy.restarts == 1 else f"{policy.restarts} times"
    return f"it was started again {times} within {policy.window_s:g} s already, which is what node.restarts allows"
