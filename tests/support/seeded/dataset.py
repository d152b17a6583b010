"""The dataset of a simulation: short lifetimes, so that purge, expiry and rollover occur in every history."""

from pathlib import Path

from strandline.index.policy import BucketPolicy
from strandline.index.sample_limits import SampleLimits
from strandline.node.shard.options import FlushTiming, ShardOptions
from strandline.recovery.offset_policy import FirstStart
from strandline.store.rows import ShardId
from strandline.wire.decode import Limits

MINUTE = 60_000
HOUR = 60 * MINUTE
START = 490_000 * HOUR + 10 * MINUTE
GRACE = MINUTE
KAFKA_RETENTION = 4 * HOUR
POLICY = BucketPolicy(flush_interval=HOUR, retention=3 * HOUR, margin=KAFKA_RETENTION + 2 * HOUR, stale_after=HOUR)
LIMITS = SampleLimits(behind=2 * HOUR, ahead=10 * MINUTE)
SHARD = ShardId("metrics", 0)


def options_of(folder: Path, *, groups: int, seal_rows: int) -> ShardOptions:
    """The options of its only shard, without those of a host."""
    return ShardOptions(
        shard=SHARD,
        policy=POLICY,
        groups=groups,
        partitions=1,
        grace=GRACE,
        history=HOUR,
        first_start=FirstStart(),
        record_limits=Limits(),
        sample_limits=LIMITS,
        series_limit=1000,
        flush=FlushTiming(spread=0.0),
        folder=folder,
        buffer_bytes=1 << 30,
        spill_bytes=1 << 30,
        poll_records=3,
        poll_timeout_s=0.0,
        seal_rows=seal_rows,
        active_lag=0,
        kafka_retention=KAFKA_RETENTION,
    )
