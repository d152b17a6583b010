"""The options of a shard from the settings and the topic's retention. Pure functions."""

from collections.abc import Iterator
from pathlib import Path

from strandline.index.policy import BucketPolicy
from strandline.index.sample_limits import SampleLimits
from strandline.node.settings.dataset import MAX_KAFKA_RETENTION, DatasetSettings
from strandline.node.settings.findings import Finding
from strandline.node.settings.problems import Problem, SettingsError
from strandline.node.settings.sections import Settings
from strandline.node.settings.shard_sections import ShardSettings
from strandline.node.settings.units import Duration
from strandline.node.shard.options import FlushTiming, ReplayMode, ReplayOptions, ShardOptions
from strandline.recovery.offset_policy import FirstStart, StartAt
from strandline.store.rows import ShardId
from strandline.wire.decode import Limits


def shard_options(
    settings: Settings, *, shard: int, partitions: int, topic_retention_ms: int | None, data_folder: Path
) -> ShardOptions:
    """All options of one shard. `data_folder` is the result of `ShardSettings.data_folder`; each shard gets its own
    folder below it. Raises `SettingsError` as `bucket_policy` does.
    """
    dataset, own = settings.dataset, settings.shard
    return ShardOptions(
        shard=ShardId(dataset.name, shard),
        policy=bucket_policy(dataset, topic_retention_ms),
        groups=dataset.groups,
        partitions=partitions,
        grace=dataset.grace.milliseconds,
        history=dataset.history.milliseconds,
        first_start=_first_start(own),
        record_limits=Limits(
            record_bytes=own.max_record_size.bytes,
            labels=own.max_labels,
            label_name=own.max_label_name,
            label_value=own.max_label_value,
        ),
        sample_limits=sample_limits(own),
        series_limit=own.series_limit,
        flush=FlushTiming(own.flush_spread),
        folder=shard_folder(data_folder, dataset.name, shard),
        buffer_bytes=own.buffer_memory.bytes,
        spill_bytes=own.spill_limit.bytes,
        segment_cache_bytes=own.segment_cache.bytes,
        poll_records=own.poll_records,
        active_lag=own.active_lag,
        warn_behind_s=own.warn_behind.seconds,
        late_by=_milliseconds(own.late_by),
        refresh_s=own.index_refresh.seconds,
        lucene_ram_mb=own.lucene_buffer.bytes / (1 << 20),
        kafka_retention=duration.milliseconds if (duration := _finite(topic_retention_ms)) is not None else None,
        replay=ReplayOptions(
            ReplayMode(settings.replay.mode), settings.replay.threshold, settings.replay.failures_allowed
        ),
    )


def shard_folder(data_folder: Path, dataset: str, shard: int) -> Path:
    """The folder of a shard's local copy and spill."""
    return data_folder / "shards" / dataset / str(shard)


def bucket_policy(dataset: DatasetSettings, topic_retention_ms: int | None) -> BucketPolicy:
    """The durations that apply to buckets and keys, for a topic with this retention.

    None means unlimited, and so do Kafka's -1 and any value above `MAX_KAFKA_RETENTION`. Raises `SettingsError` if
    the settings don't suit the topic: stored data could expire before Kafka's records.
    """
    topic_retention = _finite(topic_retention_ms)
    if found := tuple(_unfit(dataset, topic_retention)):
        raise SettingsError(_problem(dataset, each) for each in found)
    return BucketPolicy(
        flush_interval=dataset.flush_interval.milliseconds,
        retention=dataset.retention.milliseconds,
        margin=dataset.margin_with(topic_retention).milliseconds,
        stale_after=(dataset.stale_after or dataset.flush_interval).milliseconds,
    )


def _unfit(dataset: DatasetSettings, topic_retention: Duration | None) -> Iterator[Finding]:
    given = dataset.kafka_retention
    if topic_retention is None and given is None and dataset.margin is None:
        yield Finding(
            "must be set, because the topic keeps its records forever",
            "Set it to the longest time for which a node may be down, such as 7d; or set margin",
            ("kafka_retention",),
        )
    elif topic_retention is not None and given is not None and given < topic_retention:
        remedy = f"Set it to at least {topic_retention}, or \"\" for the topic's own; or lower the topic's retention.ms"
        yield Finding(f"is less than the topic's retention, {topic_retention}", remedy, ("kafka_retention",))
    else:
        yield from dataset.findings_with(topic_retention)


def _problem(dataset: DatasetSettings, finding: Finding) -> Problem:
    (name,) = finding.at
    value = getattr(dataset, name)
    shown = "" if value is None else str(value)
    return Problem(f"dataset.{name}", shown, f"with topic {dataset.topic_name}", finding.what, finding.remedy)


def _finite(milliseconds: int | None) -> Duration | None:
    if milliseconds is None or milliseconds < 0 or Duration(milliseconds) > MAX_KAFKA_RETENTION:
        return None
    return Duration(milliseconds)


def _first_start(own: ShardSettings) -> FirstStart:
    match own.first_start:
        case Duration(milliseconds=look_back):
            return FirstStart(StartAt.LOOK_BACK, look_back)
        case word:
            return FirstStart(StartAt(word))


def sample_limits(own: ShardSettings) -> SampleLimits:
    """The limits of sample times, which shards and gateways apply."""
    return SampleLimits(behind=_milliseconds(own.max_sample_age), ahead=_milliseconds(own.max_sample_ahead))


def _milliseconds(duration: Duration | None) -> int | None:
    return duration.milliseconds if duration is not None else None
