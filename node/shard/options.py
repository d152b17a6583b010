"""The options of a shard as one value. Durations are in milliseconds and sizes in bytes, unless a name has a unit."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from strandline.index.policy import BucketPolicy
from strandline.index.sample_limits import SampleLimits
from strandline.recovery.offset_policy import FirstStart
from strandline.recovery.replay.replay_input import ReplaySettings
from strandline.store.rows import DatasetShape, ShardId
from strandline.wire.decode import Limits

KEY_HASH = "xxh3-128"


@dataclass(frozen=True, slots=True)
class FlushTiming:
    """When the groups of a closed bucket are stored: spread over this share of the flush interval.

    A failed group is retried after `retry_min`, doubling up to `retry_max`.
    """

    spread: float
    retry_min: int = 1_000
    retry_max: int = 10_000


class ReplayMode(StrEnum):
    """What replays the records that a start has missed: the shard itself, workers on Spark, or the faster of the two
    for the number of records.
    """

    AUTO = "auto"
    DIRECT = "direct"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How a start catches up. Up to `threshold` records, reading them directly is faster than starting a Spark session.
    A job may fail and be retried `failures_allowed` times.
    """

    mode: ReplayMode = ReplayMode.AUTO
    threshold: int = 50_000
    failures_allowed: int = 3


@dataclass(frozen=True, slots=True)
class ShardOptions:
    """One shard of a dataset, on this node.

    - `history`: how long manifest rows outlive the data at least.
    - `folder`: has the local copy of the index and the spill.
    - `active_lag`: a shard that catches up becomes active at this lag in offsets.
    - `warn_behind_s`: a shard that has not read everything that was in the log this long ago adds a warning to its
      answers.
    - `late_by`: samples that are later than this (None: samples of any age) are so rare that remote read does not
      refuse an answer because of them.
    - `kafka_retention`: the topic's retention, None if unlimited.
    - `topic_warning`: describes a setting of the topic that puts records at risk; empty if there is none.
    """

    shard: ShardId
    policy: BucketPolicy
    groups: int
    partitions: int
    grace: int
    history: int
    first_start: FirstStart
    record_limits: Limits
    sample_limits: SampleLimits
    series_limit: int
    flush: FlushTiming
    folder: Path
    buffer_bytes: int
    spill_bytes: int
    segment_cache_bytes: int = 128 << 20
    poll_records: int = 64
    poll_timeout_s: float = 0.5
    seal_rows: int = 1 << 20
    active_lag: int = 1_000
    warn_behind_s: float = 15.0
    late_by: int | None = 24 * 3_600_000
    refresh_s: float = 1.0
    lucene_ram_mb: float = 32
    owner_name: str = ""
    replay: ReplayOptions = ReplayOptions()
    kafka_retention: int | None = None
    topic_warning: str = ""

    @property
    def shape(self) -> DatasetShape:
        """The properties of the dataset that can't be changed."""
        return DatasetShape(self.shard.dataset, self.policy.flush_interval, self.groups, KEY_HASH, self.partitions)

    @property
    def replay_settings(self) -> ReplaySettings:
        """How the shard reads records, for workers that read them in its place."""
        return ReplaySettings(
            groups=self.groups,
            flush_interval=self.policy.flush_interval,
            record_limits=self.record_limits,
            sample_limits=self.sample_limits,
            time_to_live=self.policy.time_to_live,
        )

    @property
    def row_lifetime(self) -> int:
        """The lifetime of a manifest row."""
        return self.policy.retention + max(self.history, self.policy.margin)
