"""What a shard is doing, for whoever asks: phases and counters."""

from dataclasses import dataclass, field, replace
from enum import StrEnum


class Phase(StrEnum):
    """The states of a shard, in the order of a start; then the two that end it. Only ACTIVE is ready."""

    ACQUIRING = "acquiring"
    RECOVERING_INDEX = "recovering-index"
    REPLAYING = "replaying"
    CATCHING_UP = "catching-up"
    ACTIVE = "active"
    FENCED = "fenced"
    FAILED = "failed"
    STOPPED = "stopped"


_ENDED = (Phase.FENCED, Phase.FAILED, Phase.STOPPED)


@dataclass(slots=True)
class Counters:
    """What a shard has done since it started. Written by the shard's own threads, each field by one of them.

    `dropped_series` counts series that are no part key or break a limit, by reason; `refused_rows` those over the
    series limit; `too_old` and `too_far_ahead` samples whose time is too far from their record's. Of the index buckets
    that were stored, `index_records` counts the keys' records in them, `rolled_over_keys` those that were written again
    only lest they expire, and `ended_keys` the keys that had ended.

    Three fields are no counts but tell of the last time: the record time of the newest record that was read, when
    something was last stored, and the size of the last index bucket; 0 before the first.
    """

    records: int = 0
    bytes: int = 0
    samples: int = 0
    new_keys: int = 0
    refused_rows: int = 0
    too_old: int = 0
    too_far_ahead: int = 0
    dead_letters: int = 0
    dropped_series: dict[str, int] = field(default_factory=dict)
    skipped_histograms: int = 0
    skipped_exemplars: int = 0
    skipped_metadata: int = 0
    cuts: int = 0
    stored_segments: int = 0
    stored_samples: int = 0
    stored_series: int = 0
    stored_bytes: int = 0
    index_bytes: int = 0
    index_records: int = 0
    rolled_over_keys: int = 0
    ended_keys: int = 0
    store_retries: int = 0
    log_retries: int = 0
    newest_record_at: int = 0
    last_stored_at: int = 0
    last_index_bytes: int = 0


@dataclass(slots=True)
class Status:
    """Where a shard stands. `fraction` is how much of the phase is done, None where that has no meaning. `lag` is how
    many offsets up to the last stable one are not read, None while the brokers don't answer, and `most_lag` the highest
    of the phase in which it catches up. `entered` has the time at which each phase of the start began.
    `time_left` is for how many milliseconds Kafka surely keeps what is not stored yet, None if it keeps it for ever.
    `turns` rises with every turn of the shard's loop and every piece that a start brings in: whoever watches knows by
    it that the shard is not stuck. `stuck` names what makes no progress though the loop turns; empty if all does.
    """

    phase: Phase = Phase.ACQUIRING
    fraction: float | None = None
    reason: str = ""
    lag: int | None = None
    most_lag: int = 0
    bucket: int | None = None
    time_left: int | None = None
    turns: int = 0
    stuck: str = ""
    entered: dict[str, int] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)

    def copy(self) -> "Status":
        """As it is now, to keep: what the shard's threads do from now on does not show in it."""
        return replace(self, counters=replace(self.counters))

    def enter(self, phase: Phase, now: int, fraction: float | None = None) -> None:
        """Go on to a phase of the start. What has ended does not: another thread may just have said so."""
        if self.phase in _ENDED:
            return
        if self.phase.value not in self.entered or phase is not self.phase:
            self.entered = self.entered | {phase.value: now}
        self.phase, self.fraction = phase, fraction

    def catch_up(self, lag: int | None, now: int) -> None:
        """Read on towards the log's end, so many records behind it if that was just asked for. What is done of that is
        what the lag has fallen from the highest that it was: a log that grows as fast as it is read gets no nearer.
        """
        if self.phase is not Phase.CATCHING_UP:
            self.enter(Phase.CATCHING_UP, now)
            self.most_lag = 0
        if lag is not None and self.phase is Phase.CATCHING_UP:
            self.most_lag = max(self.most_lag, lag)
            self.fraction = 1 - lag / self.most_lag if self.most_lag else 1.0
