"""How long a start will still take, by how fast it went so far."""

from dataclasses import dataclass

from strandline.node.shard.status import Phase, Status

# Less than this says nothing about the rest.
_LEAST_FRACTION = 0.01
_LEAST_ELAPSED_S = 1.0
# A trend over a longer time would tell of a rate that is long gone.
_LONGEST_TREND_S = 60.0


@dataclass(frozen=True, slots=True)
class LagSeen:
    """The lag of a shard at one moment of the monotonic clock."""

    at_s: float
    lag: int


def of_phase(status: Status, now_ms: int) -> float | None:
    """Seconds until a phase ends whose done part is known, if it goes on as it did from its begin; None before that
    can be told. Nothing is said of the phases that follow.
    """
    begun = status.entered.get(status.phase.value)
    if status.fraction is None or begun is None:
        return None
    elapsed = (now_ms - begun) / 1000
    if status.fraction < _LEAST_FRACTION or elapsed < _LEAST_ELAPSED_S:
        return None
    return elapsed * (1 - min(1.0, status.fraction)) / status.fraction


def of_lag(earlier: LagSeen, now: LagSeen) -> float | None:
    """Seconds until a lag is gone that falls as it did between two moments; None if it does not fall."""
    elapsed, caught_up = now.at_s - earlier.at_s, earlier.lag - now.lag
    if elapsed < _LEAST_ELAPSED_S or caught_up <= 0:
        return None
    return now.lag * elapsed / caught_up


class TimeLeft:
    """The estimates for the shards of a node. It remembers the lag of those that catch up: only its trend tells when
    they will be there. Belongs to one event loop.
    """

    def __init__(self) -> None:
        self._seen: dict[int, list[LagSeen]] = {}

    def estimate(self, shard: int, status: Status, now_ms: int, monotonic_s: float) -> float | None:
        """Seconds until the phase of a shard ends; None if nobody can tell, and for one that is not starting."""
        if status.phase is not Phase.CATCHING_UP or status.lag is None:
            self._seen.pop(shard, None)
            return None if status.phase is Phase.ACTIVE else of_phase(status, now_ms)
        now = LagSeen(monotonic_s, status.lag)
        recent = [seen for seen in self._seen.get(shard, []) if monotonic_s - seen.at_s <= _LONGEST_TREND_S]
        # Pages that ask at the same time add nothing to the trend.
        if not recent or monotonic_s - recent[-1].at_s >= _LEAST_ELAPSED_S:
            recent.append(now)
        self._seen[shard] = recent
        return of_lag(recent[0], now)
