"""Whether a shard of this process can answer, and what its answer may lack.

A shard that is not ACTIVE never answers as though it were whole: either it refuses, or its answer says what it is.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Protocol

from strandline.index.part_key_index import PartKeyIndex
from strandline.node.query.answers import LACKS_LATER_ONLY
from strandline.node.query.queries import QueryUnavailable
from strandline.node.shard.index_storage import LuceneStorage
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.read_horizon import Horizon
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
class ReadyShard:
    """A shard that can answer, and the warnings that go with whatever it says."""

    shard: Shard
    lucene: PartKeyIndex
    warnings: tuple[str, ...]


def ready_shard(live: LiveShard, within: TimeRange | None = None) -> ReadyShard:
    """Let a shard answer about a time, or about all of it. Raises `QueryUnavailable` if it can't, with the reason."""
    # The phase first: one that becomes ACTIVE a moment later has lacked something just now.
    status = live.status
    phase = status.phase
    shard = live.shard
    storage = shard.parts.index_storage if shard is not None else None
    lucene = storage.index if isinstance(storage, LuceneStorage) else None
    if shard is None or lucene is None or phase not in _ANSWERING:
        raise QueryUnavailable(f"{phase_in_words(status, shard_number(live))}: it can't answer", remedy=_remedy(phase))
    return ReadyShard(shard, lucene, warnings_of(shard, status, phase, within))


def warnings_of(shard: Shard, status: Status, phase: Phase, within: TimeRange | None = None) -> tuple[str, ...]:
    """What an answer of a shard about a time, or about all of it, may lack. `phase` was read before anything else."""
    options = shard.parts.options
    number = options.shard.shard
    if phase is not Phase.ACTIVE:
        words = phase_in_words(status, number)
        return (f"{words}: {_lacking_in_words(shard.stored_before, options.late_by, None)}",)
    # It stays ACTIVE, but may not know all that it should now.
    horizon, lag = shard.horizon.now(), status.lag
    if lag is not None and lag <= _FAR_BEHIND * options.active_lag and horizon.age_s <= options.warn_behind_s:
        return ()
    begun = shard.index.open.bucket * options.policy.flush_interval
    # Samples that were not late are in records that had reached Kafka a grace later.
    lacks_from = max(begun, horizon.complete_at - options.grace)
    words = _behind_in_words(lag, horizon, shard.position)
    return (f"shard {number} {words}: {_lacking_in_words(lacks_from, options.late_by, within)}",)


def _lacking_in_words(lacks_from: int, late_by: int | None, within: TimeRange | None) -> str:
    """Which samples of a time an answer may lack. Some, whatever the time: records that are not read may hold samples
    of any age, since what a gateway or an import has checked is taken however old it is.
    """
    if within is None or within.last >= lacks_from:
        return f"the answer may lack samples since {_written(lacks_from)}, and older ones that came late"
    if late_by is None or within.last >= lacks_from - late_by:
        return "the answer may lack samples that came late"
    return LACKS_LATER_ONLY


def _behind_in_words(lag: int | None, horizon: Horizon, position: int) -> str:
    """Why an active shard lacks records that reached Kafka a while ago."""
    age = f"{horizon.age_s:,.0f} s" if isfinite(horizon.age_s) else "since its start"
    transaction = horizon.transaction
    if lag is None:
        return f"can't reach Kafka ({age})"
    if transaction is not None and position >= transaction.offset:
        return (
            f"can't read past offset {transaction.offset}, where an open transaction holds back "
            f"{transaction.records:,} records since {_written(transaction.since)}"
        )
    return f"is {lag:,} records behind ({age})"


def _written(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def check_not_ended(live: LiveShard) -> None:
    """Look again before an answer is given out: an owner that was fenced meanwhile says nothing any more."""
    if live.status.phase in (Phase.FENCED, Phase.FAILED, Phase.STOPPED):
        words = phase_in_words(live.status, shard_number(live))
        raise QueryUnavailable(f"{words}: it can't answer", remedy=_remedy(live.status.phase))


def shard_number(live: LiveShard) -> int:
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
