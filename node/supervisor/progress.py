"""How far a start is, for people: the phase, its percentage and about how long it still takes."""

from strandline.node.shard.status import Phase, Status
from strandline.node.supervisor.standing import ProcessState, ShardStanding

# An estimate from less than this is worth nothing.
_LEAST_FRACTION, _LEAST_ELAPSED_MS = 0.02, 2_000
_MINUTE_S, _HOUR_S = 60, 3_600


def seconds_left(status: Status, now_ms: int) -> float | None:
    """About how long the phase still takes, at the speed that it has had; None where nobody can tell."""
    entered, fraction = status.entered.get(status.phase.value), status.fraction
    if entered is None or fraction is None or not _LEAST_FRACTION <= fraction <= 1:
        return None
    elapsed = now_ms - entered
    return elapsed / 1000 * (1 - fraction) / fraction if elapsed >= _LEAST_ELAPSED_MS else None


def describe(shard: ShardStanding, now_ms: int) -> str:
    """A shard in a few words, such as "replaying 43 %, about 3 min left"."""
    if shard.state is ProcessState.WAITING:
        again = f"starts again in {shard.starts_in_s or 0:.0f} s"
        return f"{again}: {shard.reason}" if shard.reason else again
    if shard.state is ProcessState.DOWN:
        return f"down: {shard.reason}"
    if shard.report is None or shard.state is not ProcessState.RUNNING:
        return shard.state.value
    status = shard.report.status
    words = status.phase.value
    if status.phase is Phase.ACTIVE:
        return words
    if status.phase is Phase.CATCHING_UP and status.lag is not None:
        return f"{words}, {status.lag} records behind"
    if status.fraction is not None:
        words += f" {100 * status.fraction:.0f} %"
    left = seconds_left(status, now_ms)
    return f"{words}, about {_duration(left)} left" if left is not None else words


def _duration(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE_S:.0f} min" if seconds < _HOUR_S else f"{seconds / _HOUR_S:.1f} h"
