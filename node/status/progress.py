"""Describes the progress of a start in a few words: the phase, its percentage and the remaining time."""

from strandline.node.shard.phases import seconds_left
from strandline.node.shard.status import Phase
from strandline.node.status.processes import ProcessState, ProcessStatus, ShardProcessStatus

_MINUTE_S, _HOUR_S = 60, 3_600


def describe(shard: ShardProcessStatus, now_ms: int) -> str:
    """A shard in a few words, such as "replaying 43 %, about 3 min left"."""
    if shard.state in (ProcessState.WAITING, ProcessState.DOWN):
        return _describe_failure(shard)
    if shard.report is None or shard.state is not ProcessState.RUNNING:
        return shard.state.value
    status = shard.report.status
    words = status.phase.value
    if shard.store_unanswered_s is not None:
        return f"{words}, its store has not answered for {_duration(shard.store_unanswered_s)}"
    if status.phase is Phase.ACTIVE:
        return words
    if status.fraction is not None:
        words += f" {100 * status.fraction:.0f} %"
    if status.phase is Phase.CATCHING_UP and status.lag is not None:
        words += f", {status.lag} records behind"
    left = seconds_left(status, now_ms)
    return f"{words}, about {_duration(left)} left" if left is not None else words


def describe_process(process: ProcessStatus) -> str:
    """The front or the worker in a few words, such as "starts again in 4 s: was ended by SIGKILL"."""
    return _describe_failure(process) if process.has_failed else process.state.value


def _describe_failure(process: ShardProcessStatus | ProcessStatus) -> str:
    if process.state is ProcessState.DOWN:
        return f"down: {process.reason}"
    again = f"starts again in {process.starts_in_s or 0:.0f} s"
    return f"{again}: {process.reason}" if process.reason else again


def _duration(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE_S:.0f} min" if seconds < _HOUR_S else f"{seconds / _HOUR_S:.1f} h"
