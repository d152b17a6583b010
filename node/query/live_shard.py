"""Whether a shard of this process can answer, and what its answer may lack.

A shard that is not ACTIVE never answers as though it were whole: either it refuses, or its answer says what it is.
"""

from dataclasses import dataclass
from typing import Protocol

from strandline.index.part_key_index import PartKeyIndex
from strandline.node.query.queries import QueryUnavailable
from strandline.node.shard.documents_home import LuceneHome
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Phase, Status
from strandline.time_range import TimeRange

_DOING = {
    Phase.ACQUIRING: "is being taken",
    Phase.RECOVERING_INDEX: "is loading its index",
    Phase.REPLAYING: "is replaying",
    Phase.CATCHING_UP: "is catching up",
    Phase.ACTIVE: "has just started",
    Phase.FENCED: "belongs to another owner now",
    Phase.FAILED: "has failed",
    Phase.STOPPED: "was stopped",
}
# All but the last with a warning.
_ANSWERING = (Phase.REPLAYING, Phase.CATCHING_UP, Phase.ACTIVE)


class LiveShard(Protocol):
    """A shard's life as whoever asks sees it: `RunningShard`. `shard` is None until its index is loaded."""

    @property
    def status(self) -> Status: ...

    @property
    def shard(self) -> Shard | None: ...

    @property
    def parts(self) -> ShardParts: ...


# A shard that was active and falls behind by so many times the lag of an active one says so. Less than that is a burst.
_FAR_BEHIND = 10


@dataclass(frozen=True, slots=True)
class Answering:
    """A shard that can answer, and the warnings that go with whatever it says."""

    shard: Shard
    lucene: PartKeyIndex
    warnings: tuple[str, ...]


def answering(live: LiveShard, within: TimeRange | None = None) -> Answering:
    """Let a shard answer about a time, or about all of it. Raises `QueryUnavailable` if it can't, with the reason."""
    # The phase first: one that becomes ACTIVE a moment later has lacked something just now.
    status = live.status
    phase = status.phase
    words = phase_in_words(status, number_of(live)) if phase is not Phase.ACTIVE else ""
    shard = live.shard
    home = shard.parts.home if shard is not None else None
    lucene = home.index if isinstance(home, LuceneHome) else None
    if shard is None or lucene is None or phase not in _ANSWERING:
        words = words or phase_in_words(status, number_of(live))
        raise QueryUnavailable(f"{words}: it can't answer", remedy=_remedy(phase))
    lag = status.lag
    is_behind = lag is None or lag > _FAR_BEHIND * live.parts.options.active_lag
    if phase is Phase.ACTIVE and is_behind and (within is None or within.last >= _known_until(live, shard)):
        # It stays ACTIVE, but for now it does not know all that it should. What is older than that it knows as ever.
        words = f"shard {number_of(live)} " + ("can't reach Kafka" if lag is None else f"is {lag:,} records behind")
        phase = Phase.CATCHING_UP
    warnings = (f"{words}: the answer may lack recent samples",) if phase is not Phase.ACTIVE else ()
    return Answering(shard, lucene, warnings)


def _known_until(live: LiveShard, shard: Shard) -> int:
    """The time from which on samples may be missing that were not late: those of records that are not read yet."""
    options, status = live.parts.options, live.status
    begun = shard.index.open.bucket * options.policy.flush_interval
    # Where producers give the times, a record may be of a time that has not come yet.
    return min(max(begun, status.counters.newest_record_at - options.grace), status.caught_up_at - options.grace)


def still_answers(live: LiveShard) -> None:
    """Look again before an answer is given out: an owner that was fenced meanwhile says nothing any more."""
    if live.status.phase in (Phase.FENCED, Phase.FAILED, Phase.STOPPED):
        words = phase_in_words(live.status, number_of(live))
        raise QueryUnavailable(f"{words}: it can't answer", remedy=_remedy(live.status.phase))


def number_of(live: LiveShard) -> int:
    """The shard's number."""
    return live.parts.options.shard.shard


def phase_in_words(status: Status, number: int) -> str:
    """What a shard is doing, how far it is, and why: "shard 3 is replaying (45 %)"."""
    phase, fraction, lag, reason = status.phase, status.fraction, status.lag, status.reason
    words = f"shard {number} {_DOING[phase]}"
    if fraction is not None and phase in (Phase.RECOVERING_INDEX, Phase.REPLAYING):
        return f"{words} ({fraction:.0%})".replace("%", " %")
    if phase is Phase.CATCHING_UP and lag is not None:
        return f"{words} ({lag:,} records behind)"
    return f"{words} ({reason})" if reason and phase in (Phase.FENCED, Phase.FAILED, Phase.STOPPED) else words


def _remedy(phase: Phase) -> str:
    if phase is Phase.FENCED:
        return "Ask the node that has it now"
    if phase is Phase.FAILED:
        return "The reason stands in the shard's log and on the status page"
    return "Ask again in a while; the status page shows how far it is"
