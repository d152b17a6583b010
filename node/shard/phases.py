"""How a shard gets on, told from its status: pure functions. Times are seconds."""

from itertools import pairwise

from strandline.node.shard.report import ShardReport
from strandline.node.shard.status import Phase, Status

STARTING = (Phase.ACQUIRING, Phase.RECOVERING_INDEX, Phase.REPLAYING, Phase.CATCHING_UP)
"""The phases of a start, in their order."""

# Less than this says nothing about the rest.
_MIN_FRACTION, _MIN_ELAPSED_MS = 0.01, 1_000


def phase_seconds(status: Status, now: int) -> dict[Phase, float]:
    """How long each phase of the start took, up to now for the one that is not over. A phase that was skipped took no
    time and is not there.
    """
    order = list(Phase)
    # Two may have begun in the same millisecond.
    entered = sorted(((at, Phase(name)) for name, at in status.entered.items()), key=lambda one: order.index(one[1]))
    # A start that failed stays in its last phase: it took as long as nobody knows, and is not told.
    ends_now = [(now, status.phase)] if entered and status.phase is entered[-1][1] else []
    return {
        phase: max(0, after - at) / 1000
        for (at, phase), (after, _) in pairwise([*entered, *ends_now])
        if phase in STARTING
    }


def lag_seconds(report: ShardReport, now: int) -> float | None:
    """For how long records may have waited that are not read; 0 once all are read. None while this is unknown: the
    brokers don't answer, or nothing was read yet.
    """
    status, newest = report.status, report.status.counters.newest_record_at
    if status.lag is None or report.behind_s is not None:
        return None if status.lag is None else report.behind_s
    # Everything of one moment has not been read since the start: what is left is the age of the newest record.
    return max(0, now - newest) / 1000 if newest else None


def seconds_left(status: Status, now: int) -> float | None:
    """About how long the phase of a start still takes, if it goes on as it did from its begin; None before that can be
    told. Nothing is said of the phases that follow.
    """
    begun, fraction = status.entered.get(status.phase.value), status.fraction
    if begun is None or fraction is None or status.phase not in STARTING:
        return None
    elapsed = now - begun
    if fraction < _MIN_FRACTION or elapsed < _MIN_ELAPSED_MS:
        return None
    return elapsed / 1000 * (1 - min(1.0, fraction)) / fraction
