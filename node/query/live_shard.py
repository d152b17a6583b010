"""Whether a shard of this process can answer, and what its answer may lack.

A shard that is not ACTIVE either refuses, or its answer has a warning.
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

_PHASE_WORDS = {
    Phase.ACQUIRING: "is being acquired",
    Phase.RECOVERING_INDEX: "is loading its index",
    Phase.REPLAYING: "is replaying",
    Phase.CATCHING_UP: "is catching up",
    Phase.ACTIVE: "has just started",
    Phase.FENCED: "belongs to another owner now",
    Phase.FAILED: "has failed",
    Phase.STOPPED: "was stopped",
}
# The phases in which a shard answers, all but ACTIVE with a warning.
_ANSWERING_PHASES = (Phase.REPLAYING, Phase.CATCHING_UP, Phase.ACTIVE)


class LiveShard(Protocol):
    """What answers need of a `RunningShard`. `shard` is None until its index is loaded."""

    @property
    def status(self) -> Status: ...

    @property
    def shard(self) -> Shard | None: ...

    @property
    def parts(self) -> ShardParts: ...


# An active shard warns when its lag exceeds this many times `shard.active_lag`. Less than that is a burst.
_WARN_LAG_FACTOR = 10


@dataclass(frozen=True, slots=True)
class ReadyShard:
    """A shard that can answer, and the warnings of its answers."""

    shard: Shard
    lucene: PartKeyIndex
    warnings: tuple[str, ...]


def ready_shard(live: LiveShard, within: TimeRange | None = None) -> ReadyShard:
    """The shard, for answers about a time range, or about all times. Raises `QueryUnavailable` if it can't answer."""
    # The phase is read first: a shard that becomes ACTIVE later may still have lacked data.
    status = live.status
    phase = status.phase
    shard = live.shard
    storage = shard.parts.index_storage if shard is not None else None
    lucene = storage.index if isinstance(storage, LuceneStorage) else None
    if shard is None or lucene is None or phase not in _ANSWERING_PHASES:
        raise QueryUnavailable(f"{phase_in_words(status, shard_number(live))}: it can't answer", remedy=_remedy(phase))
    return ReadyShard(shard, lucene, warnings_of(shard, status, phase, within))


def warnings_of(shard: Shard, status: Status, phase: Phase, within: TimeRange | None = None) -> tuple[str, ...]:
    """What a shard's answer about a time range, or about all times, may lack. `phase` must be read before the rest."""
    options = shard.parts.options
    number = options.shard.shard
    if phase is not Phase.ACTIVE:
        words = phase_in_words(status, number)
        return (f"{words}: {_lacking_in_words(shard.stored_before, options.late_by, None)}",)
    # An active shard may have fallen behind.
    horizon, lag = shard.horizon.now(), status.lag
    if lag is not None and lag <= _WARN_LAG_FACTOR * options.active_lag and horizon.age_s <= options.warn_behind_s:
        return ()
    begun = shard.index.open.bucket * options.policy.flush_interval
    # Samples that are not late reach Kafka within the grace.
    lacks_from = max(begun, horizon.complete_at - options.grace)
    words = _behind_in_words(lag, horizon, shard.position)
    return (f"shard {number} {words}: {_lacking_in_words(lacks_from, options.late_by, within)}",)


def _lacking_in_words(lacks_from: int, late_by: int | None, within: TimeRange | None) -> str:
    """Which samples of a time range an answer may lack. Never none: unread records may have samples of any age, since
    samples that a gateway or an import has checked are accepted at any age.
    """
    if within is None or within.last >= lacks_from:
        return f"the answer may lack samples since {_formatted_time(lacks_from)}, and older ones that came late"
    if late_by is None or within.last >= lacks_from - late_by:
        return "the answer may lack samples that came late"
    return LACKS_LATER_ONLY


def _behind_in_words(lag: int | None, horizon: Horizon, position: int) -> str:
    """Why an active shard lacks records that have been in Kafka for some time."""
    age = f"{horizon.age_s:,.0f} s" if isfinite(horizon.age_s) else "since its start"
    transaction = horizon.transaction
    if lag is None:
        return f"can't reach Kafka ({age})"
    if transaction is not None and position >= transaction.offset:
        return (
            f"can't read past offset {transaction.offset}, where an open transaction holds back "
            f"{transaction.records:,} records since {_formatted_time(transaction.since)}"
        )
    return f"is {lag:,} records behind ({age})"


def _formatted_time(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def check_not_ended(live: LiveShard) -> None:
    """Raises `QueryUnavailable` if the shard has ended. Checked again before an answer is returned: a fenced owner must
    not answer.
    """
    if live.status.phase in (Phase.FENCED, Phase.FAILED, Phase.STOPPED):
        words = phase_in_words(live.status, shard_number(live))
        raise QueryUnavailable(f"{words}: it can't answer", remedy=_remedy(live.status.phase))


def shard_number(live: LiveShard) -> int:
    """The shard's number."""
    return live.parts.options.shard.shard


def phase_in_words(status: Status, number: int) -> str:
    """A shard's phase in words, with its progress or the reason: "shard 3 is replaying (45 %)"."""
    phase, fraction, lag, reason = status.phase, status.fraction, status.lag, status.reason
    words = f"shard {number} {_PHASE_WORDS[phase]}"
    if fraction is not None and phase in (Phase.RECOVERING_INDEX, Phase.REPLAYING):
        return f"{words} ({fraction:.0%})".replace("%", " %")
    if phase is Phase.CATCHING_UP and lag is not None:
        return f"{words} ({lag:,} records behind)"
    return f"{words} ({reason})" if reason and phase in (Phase.FENCED, Phase.FAILED, Phase.STOPPED) else words


def _remedy(phase: Phase) -> str:
    if phase is Phase.FENCED:
        return "Query the node that owns it now"
    if phase is Phase.FAILED:
        return "The shard's log and the status page show the reason"
    return "Try again later; the status page shows the progress"
