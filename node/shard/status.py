"""The status of a shard: phase, progress and counters."""

from dataclasses import dataclass, field, replace
from enum import StrEnum


class Phase(StrEnum):
    """The phases of a start in order, then those of a shard that has ended. A shard is ready only when ACTIVE."""

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
    """Counts of a shard since its start. Each field is written by one of the shard's threads.

    `dropped_series` counts, by reason, series that are not valid part keys or exceed a limit, and `refused_rows` those
    over the series limit. `too_old` and `too_far_ahead` count samples whose time is too far from their record's.
    `index_records` counts the key records in stored index buckets, `rolled_over_keys` those that were rolled over, and
    `ended_keys` those of ended keys.

    Three fields are not counts; they are 0 before their first value: the record time of the newest record that was
    read, the time of the last commit of a group, and the size of the last index bucket.
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
    """The progress of a shard.

    - `fraction`: how much of the phase is done, None if it can't be measured.
    - `lag`: the number of unread offsets below the last stable offset, None while the brokers don't answer. `most_lag`:
      the highest lag of the phase CATCHING_UP.
    - `entered`: when each phase of the start began.
    - `time_left`: the retention margin, for how many milliseconds Kafka is guaranteed to keep what is not stored; None
      if unlimited.
    - `turns`: counts the iterations of the shard's loop and the steps of a start, as a heartbeat for the supervisor.
    - `stuck`: names the part that makes no progress although the loop iterates; empty if there is none.
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
        """A copy that the shard's threads don't change."""
        return replace(self, counters=replace(self.counters))

    def enter(self, phase: Phase, now: int, fraction: float | None = None) -> None:
        """Enter a phase of the start, unless the shard has ended, which another thread may just have set."""
        if self.phase in _ENDED:
            return
        if self.phase.value not in self.entered or phase is not self.phase:
            self.entered = self.entered | {phase.value: now}
        self.phase, self.fraction = phase, fraction

    def catch_up(self, lag: int | None, now: int) -> None:
        """Be in the phase CATCHING_UP, with this lag if it is current. The fraction is how far the lag has fallen from
        its maximum: if the log grows as fast as it is read, there is no progress.
        """
        if self.phase is not Phase.CATCHING_UP:
            self.enter(Phase.CATCHING_UP, now)
            self.most_lag = 0
        if lag is not None and self.phase is Phase.CATCHING_UP:
            self.most_lag = max(self.most_lag, lag)
            self.fraction = 1 - lag / self.most_lag if self.most_lag else 1.0
