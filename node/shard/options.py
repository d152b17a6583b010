"""All that a shard is told, as one value. Times are in milliseconds, sizes in bytes, unless a name says otherwise."""

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
    """When what is closed is stored: spread over this much of the flush interval, group by group.

    A group that failed is tried again after `retry_min`, doubling up to `retry_max`.
    """

    spread: float
    retry_min: int = 1_000
    retry_max: int = 10_000


class ReplayMode(StrEnum):
    """Who reads what a start has missed: the shard itself, workers on Spark, or whoever is quicker for so much."""

    AUTO = "auto"
    DIRECT = "direct"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How a start catches up. Up to `threshold` records it is quicker to read them than to start a Spark session. A job
    may fail `failures_allowed` times and be tried again.
    """

    mode: ReplayMode = ReplayMode.AUTO
    threshold: int = 50_000
    failures_allowed: int = 3


@dataclass(frozen=True, slots=True)
class ShardOptions:
    """One shard of a dataset, on this node.

    `history` is how long manifest rows outlive the data at least. `folder` holds the local copy of the index and the
    spilled pages. The lag in records below which a shard that catches up counts as active is `active_lag`.
    One that has not read all that was in the log `warn_behind_s` ago adds a warning to its answers. Samples that are
    late by more than `late_by` (milliseconds, None for any) are so rare that remote read does not refuse for them.
    `kafka_retention` is how long the topic keeps its records, None for ever; `topic_warning` names what in the topic's
    settings puts records at risk.
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
        """What belongs to the dataset for good."""
        return DatasetShape(self.shard.dataset, self.policy.flush_interval, self.groups, KEY_HASH, self.partitions)

    @property
    def replay_settings(self) -> ReplaySettings:
        """How the shard reads records, for whoever reads them in its place."""
        return ReplaySettings(
            groups=self.groups,
            flush_interval=self.policy.flush_interval,
            record_limits=self.record_limits,
            sample_limits=self.sample_limits,
            time_to_live=self.policy.time_to_live,
        )

    @property
    def row_lifetime(self) -> int:
        """How long a manifest row lives."""
        return self.policy.retention + max(self.history, self.policy.margin)
