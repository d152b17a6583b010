"""Whether a child process that has ended is restarted, and when. Pure functions over its history.

| how it ended                             | what follows                                                            |
| ---------------------------------------- | ----------------------------------------------------------------------- |
| data is lost                             | DOWN at once: another start would fail in the same way                  |
| the settings are invalid                 | a restart after a minute: the file may be about to be replaced          |
| fenced                                   | a restart after 60 to 75 s, which checks whether the owner is gone      |
| something is unreachable or full         | a restart after a pause; over the limit, as soon as the limit allows it |
| anything else, including a signal        | a restart after a pause; over the limit, DOWN                           |

The pause doubles with each consecutive end. `node.restarts` limits the restarts within any `node.restart_window`.
Restarts after fencing don't count, since another owner serves the shard. A policy that never gives up has pauses and
no limit.
"""

import signal
from dataclasses import dataclass

from strandline.errors import ExitCode
from strandline.node.settings.http_sections import NodeSettings

FENCED_PAUSE_S = 60.0
"""How long after being fenced a start checks again whether the other owner is gone."""
_FENCED_JITTER_S = 15.0
# Each pause is extended by up to this share of itself, so that processes that ended together don't restart together.
_JITTER = 0.25


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """At most `restarts` within any `window_s`, after pauses that double from `min_pause_s` to `max_pause_s`. A process
    that was active for `steady_s` starts again with the shortest pause. Without `gives_up`, restarts are not limited.
    """

    restarts: int
    window_s: float
    min_pause_s: float = 1.0
    max_pause_s: float = 60.0
    steady_s: float = 60.0
    gives_up: bool = True

    @classmethod
    def of(cls, settings: NodeSettings) -> "RestartPolicy":
        """The policy of the settings."""
        return cls(settings.restarts, settings.restart_window.seconds)


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a process ended: when, its exit code (negative for a signal), how long it had been active, whether its error
    is retryable, and whether its last report was that it is fenced.
    """

    at: float
    code: int
    active_s: float = 0.0
    retryable: bool = False
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class RestartHistory:
    """The times of the restarts that count, oldest first, and the number of consecutive ends."""

    restarts: tuple[float, ...] = ()
    ends_in_row: int = 0


@dataclass(frozen=True, slots=True)
class RestartAt:
    """Restart at this time, with this history from then on."""

    at: float
    history: RestartHistory


@dataclass(frozen=True, slots=True)
class StayDown:
    """Don't restart without an operator. `why` is appended to the description of the end."""

    why: str


def decide(
    policy: RestartPolicy, history: RestartHistory, end: ProcessEnd, jitter: float = 0.0
) -> RestartAt | StayDown:
    """Decide what follows an end. `jitter` in [0, 1) spreads the starts."""
    if end.fenced or end.code == ExitCode.FENCED:
        return RestartAt(end.at + FENCED_PAUSE_S + jitter * _FENCED_JITTER_S, history)
    if end.code == ExitCode.DATA_LOST:
        return StayDown("it is not restarted until the cause is fixed")
    if end.code == ExitCode.USAGE:
        # The settings file, or a file that it names, may be about to be replaced. Another attempt costs nothing.
        return RestartAt(end.at + policy.max_pause_s * (1 + jitter * _JITTER), history)
    row = 1 if end.active_s >= policy.steady_s else history.ends_in_row + 1
    at = end.at + _pause(policy, row) * (1 + jitter * _JITTER)
    if not policy.gives_up:
        return RestartAt(at, RestartHistory((), row))
    counted = _within(policy, history, at)
    if len(counted) >= policy.restarts:
        if not end.retryable or not policy.restarts:
            return StayDown(_over_limit(policy))
        # The time at which the window no longer contains the oldest of the newest `restarts` restarts.
        at = counted[-policy.restarts] + policy.window_s
        counted = _within(policy, history, at)
    return RestartAt(at, RestartHistory((*counted, at), row))


def describe_end(code: int) -> str:
    """Describe an exit code in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}"


def _pause(policy: RestartPolicy, row: int) -> float:
    # The exponent is limited to avoid an overflow: a process may fail for months.
    return min(policy.max_pause_s, policy.min_pause_s * 2.0 ** min(row - 1, 60))


def _within(policy: RestartPolicy, history: RestartHistory, at: float) -> tuple[float, ...]:
    """The restarts that would be in one window with a restart at this time."""
    return tuple(restart for restart in history.restarts if restart + policy.window_s > at)


def _over_limit(policy: RestartPolicy) -> str:
    if not policy.restarts:
        return "node.restarts is 0, so it is not restarted"
    times = "once" if policy.restarts == 1 else f"{policy.restarts} times"
    return f"it has been restarted {times} within {policy.window_s:g} s, the limit of node.restarts"
