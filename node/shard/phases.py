"""The progress of a shard, computed from its status. Pure functions. Results are in seconds."""

from itertools import pairwise

from strandline.node.shard.report import ShardReport
from strandline.node.shard.status import Phase, Status

STARTING = (Phase.ACQUIRING, Phase.RECOVERING_INDEX, Phase.REPLAYING, Phase.CATCHING_UP)
"""The phases of a start, in their order."""

# Below these, there is no estimate of the remaining time.
_MIN_FRACTION, _MIN_ELAPSED_MS = 0.01, 1_000


def phase_seconds(status: Status, now: int) -> dict[Phase, float]:
    """The duration of each phase of the start; for the current one, up to now. Skipped phases are left out."""
    order = list(Phase)
    # In the order of the phases: two may have begun in the same millisecond.
    entered = sorted(((at, Phase(name)) for name, at in status.entered.items()), key=lambda one: order.index(one[1]))
    # The duration of the last phase of a failed start is unknown, and left out.
    ends_now = [(now, status.phase)] if entered and status.phase is entered[-1][1] else []
    return {
        phase: max(0, after - at) / 1000
        for (at, phase), (after, _) in pairwise([*entered, *ends_now])
        if phase in STARTING
    }


def lag_seconds(report: ShardReport, now: int) -> float | None:
    """How long unread records may have been waiting; 0 if all are read. None if unknown: the brokers don't answer, or
    nothing was read yet.
    """
    status, newest = report.status, report.status.counters.newest_record_at
    if status.lag is None or report.behind_s is not None:
        return None if status.lag is None else report.behind_s
    # Since the start, reading has not yet reached a known end of the log: use the age of the newest record.
    return max(0, now - newest) / 1000 if newest else None


def seconds_left(status: Status, now: int) -> float | None:
    """The estimated remaining time of the current phase of a start, by its speed so far; None without an estimate. Does
    not include the following phases.
    """
    begun, fraction = status.entered.get(status.phase.value), status.fraction
    if begun is None or fraction is None or status.phase not in STARTING:
        return None
    elapsed = now - begun
    if fraction < _MIN_FRACTION or elapsed < _MIN_ELAPSED_MS:
        return None
    return elapsed / 1000 * (1 - min(1.0, fraction)) / fraction
