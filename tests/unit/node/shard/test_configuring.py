"""Settings as the options of a shard, and the effect of the topic's retention."""

import math
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from strandline.errors import ExitCode
from strandline.index.policy import BucketPolicy
from strandline.index.sample_limits import SampleLimits
from strandline.node.settings import DatasetSettings, Problem, Settings, SettingsError, ShardSettings
from strandline.node.settings.dataset import MAX_ROWS
from strandline.node.shard.configuring import bucket_policy, shard_options
from strandline.node.shard.options import ShardOptions
from strandline.recovery.offset_policy import FirstStart, StartAt
from strandline.store.rows import DatasetShape, ShardId
from strandline.wire.decode import Limits
from strandline.wire.kernels.labels import MAX_LABELS, MAX_TEXT

pytestmark = pytest.mark.unit

SECOND, HOUR, DAY = 1_000, 3_600_000, 86_400_000


def options(settings: Settings, topic_retention_ms: int | None = 7 * DAY) -> ShardOptions:
    return shard_options(
        settings, shard=3, partitions=8, topic_retention_ms=topic_retention_ms, data_folder=Path("/data")
    )


def problem_of(topic_retention_ms: int | None, **values: Any) -> Problem:
    with pytest.raises(SettingsError) as raised:
        bucket_policy(DatasetSettings(**values), topic_retention_ms)
    assert raised.value.exit_code == ExitCode.USAGE
    (problem,) = raised.value.problems
    assert problem.setting in str(raised.value)
    return problem


def test_the_defaults_make_a_policy_with_the_smallest_safe_margin() -> None:
    assert bucket_policy(DatasetSettings(), 7 * DAY) == BucketPolicy(
        flush_interval=HOUR, retention=7 * DAY, margin=7 * DAY + 2 * HOUR, stale_after=HOUR
    )


def test_all_settings_reach_the_policy() -> None:
    dataset = DatasetSettings(
        flush_interval="15m", retention="3d", margin="10d", stale_after="2h", kafka_retention="8d"
    )
    assert bucket_policy(dataset, 7 * DAY) == BucketPolicy(
        flush_interval=HOUR // 4, retention=3 * DAY, margin=10 * DAY, stale_after=2 * HOUR
    )


@pytest.mark.parametrize("unlimited", [None, -1, 3640 * DAY + 1, 10**17])
def test_a_topic_with_unlimited_retention_needs_a_setting(unlimited: int | None) -> None:
    assert problem_of(unlimited, name="power", topic="meters") == Problem(
        "dataset.kafka_retention",
        "",
        "with topic meters",
        "must be set, because the topic keeps its records forever",
        "Set it to the longest time for which a node may be down, such as 7d; or set margin",
    )
    assert bucket_policy(DatasetSettings(kafka_retention="2d"), unlimited).margin == 2 * DAY + 2 * HOUR
    assert bucket_policy(DatasetSettings(margin="5d"), unlimited).margin == 5 * DAY
    assert bucket_policy(DatasetSettings(margin="5d", kafka_retention="2d"), unlimited).margin == 5 * DAY


def test_a_retention_below_the_topic_s_own_is_refused() -> None:
    problem = problem_of(7 * DAY, kafka_retention="167h")
    assert (problem.setting, problem.value_shown) == ("dataset.kafka_retention", "167h")
    assert problem.what == "is less than the topic's retention, 7d"
    assert problem.remedy == "Set it to at least 7d, or \"\" for the topic's own; or lower the topic's retention.ms"
    assert bucket_policy(DatasetSettings(kafka_retention="7d"), 7 * DAY).margin == 7 * DAY + 2 * HOUR


def test_a_retention_above_the_topic_s_own_is_used() -> None:
    """So that the topic's retention can be raised afterwards."""
    assert bucket_policy(DatasetSettings(kafka_retention="10d"), 7 * DAY).margin == 10 * DAY + 2 * HOUR


def test_a_margin_below_the_topic_s_retention_is_refused() -> None:
    problem = problem_of(7 * DAY, margin="169h")
    assert (problem.setting, problem.value_shown, problem.where) == ("dataset.margin", "169h", "with topic metrics")
    assert problem.what == (
        "is less than Kafka's retention, 7d, and two flush intervals of 1h: a node that was down could find its keys"
        " expired"
    )
    assert problem.remedy == 'At least 170h, or "" for that'
    assert bucket_policy(DatasetSettings(margin="170h"), 7 * DAY).margin == 170 * HOUR


def test_a_topic_s_retention_that_needs_too_many_rows_is_refused() -> None:
    problem = problem_of(3640 * DAY)
    assert problem.what.startswith(
        "makes 1,488,010 manifest rows per shard, and the maximum is 500,000: (7d of retention + 87362h of margin)"
    )
    assert problem.remedy == "Raise flush_interval, or lower groups, retention or the topic's retention"
    assert problem_of(7 * DAY, flush_interval="1m", retention="1d", history="0s", groups=64).setting == (
        "dataset.flush_interval"
    )


def hours(maximum: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(1, maximum)


@given(
    minutes=st.sampled_from([1, 5, 15, 30, 60, 120, 360, 1440]),
    groups=st.integers(1, 256),
    retention_and_history=st.tuples(st.integers(24, 600), st.integers(0, 600)),
    margin_kafka_and_topic=st.tuples(hours(1000), hours(600), hours(600)),
)
def test_a_policy_is_accepted_if_and_only_if_it_fulfils_every_guarantee_about_time(
    minutes: int,
    groups: int,
    retention_and_history: tuple[int, int],
    margin_kafka_and_topic: tuple[int | None, int | None, int | None],
) -> None:
    interval, (retention, history) = minutes * 60_000, retention_and_history
    margin_hours, kafka, topic = margin_kafka_and_topic
    written = {"retention": retention, "history": history, "margin": margin_hours, "kafka_retention": kafka}
    values: dict[str, Any] = {name: f"{hours}h" for name, hours in written.items() if hours is not None}

    least_margin = max(topic or 0, kafka or 0) * HOUR + 2 * interval
    margin = least_margin if margin_hours is None else margin_hours * HOUR
    buckets = math.ceil((retention * HOUR + max(history * HOUR, margin)) / interval)
    is_valid = (
        any(margin_kafka_and_topic)
        and margin >= least_margin
        and not (kafka and topic and kafka < topic)
        and buckets * (groups + 1) <= MAX_ROWS
    )
    with nullcontext() if is_valid else pytest.raises((ValidationError, SettingsError)):
        dataset = DatasetSettings(flush_interval=f"{minutes}m", groups=groups, **values)
        assert bucket_policy(dataset, topic * HOUR if topic else None).margin == margin


def test_a_shard_gets_the_default_options() -> None:
    shard_options_of = options(Settings())
    assert shard_options_of.shard == ShardId("metrics", 3)
    assert shard_options_of.shape == DatasetShape("metrics", HOUR, 16, "xxh3-128", 8)
    assert shard_options_of.row_lifetime == 37 * DAY
    assert (shard_options_of.grace, shard_options_of.history) == (30 * SECOND, 30 * DAY)
    assert shard_options_of.first_start == FirstStart(StartAt.EARLIEST)
    assert shard_options_of.record_limits == Limits()
    assert shard_options_of.sample_limits == SampleLimits(behind=None, ahead=600 * SECOND)
    assert shard_options_of.folder == Path("/data/shards/metrics/3")
    assert (shard_options_of.buffer_bytes, shard_options_of.spill_bytes) == (512 << 20, 4 << 30)
    assert (shard_options_of.series_limit, shard_options_of.flush.spread) == (2_000_000, 0.8)


def test_the_default_settings_are_the_default_options_of_a_shard() -> None:
    shard_options_of = options(Settings())
    for field in fields(ShardOptions):
        if isinstance(field.default, int | float | str):
            assert getattr(shard_options_of, field.name) == field.default, field.name


def test_all_settings_reach_the_shard() -> None:
    settings = Settings(
        dataset=DatasetSettings(name="power", grace="5s", groups=4, history="1d"),
        shard=ShardSettings(
            first_start="90m",
            series_limit=5,
            max_labels=6,
            max_label_name=7,
            max_label_value=8,
            max_record_size="9k",
            max_sample_age="10s",
            max_sample_ahead="11s",
            buffer_memory="12m",
            spill_limit="13m",
            segment_cache="17m",
            flush_spread=0.5,
            poll_records=14,
            active_lag=15,
            index_refresh="1600ms",
            lucene_buffer="1536k",
        ),
    )
    shard_options_of = options(settings)
    assert (shard_options_of.shard, shard_options_of.groups, shard_options_of.partitions) == (ShardId("power", 3), 4, 8)
    assert (shard_options_of.grace, shard_options_of.history) == (5 * SECOND, DAY)
    assert shard_options_of.first_start == FirstStart(StartAt.LOOK_BACK, 90 * 60 * SECOND)
    assert shard_options_of.record_limits == Limits(record_bytes=9 << 10, labels=6, label_name=7, label_value=8)
    assert shard_options_of.sample_limits == SampleLimits(behind=10 * SECOND, ahead=11 * SECOND)
    assert (shard_options_of.series_limit, shard_options_of.buffer_bytes, shard_options_of.spill_bytes) == (
        5,
        12 << 20,
        13 << 20,
    )
    assert shard_options_of.segment_cache_bytes == 17 << 20
    assert shard_options_of.flush.spread == 0.5
    assert (
        shard_options_of.poll_records,
        shard_options_of.active_lag,
        shard_options_of.refresh_s,
        shard_options_of.lucene_ram_mb,
    ) == (14, 15, 1.6, 1.5)
    assert shard_options_of.folder == Path("/data/shards/power/3")


@pytest.mark.parametrize(
    ("written", "first_start"),
    [
        ("earliest", FirstStart(StartAt.EARLIEST)),
        ("latest", FirstStart(StartAt.LATEST)),
        ("1d", FirstStart(StartAt.LOOK_BACK, DAY)),
    ],
)
def test_each_kind_of_first_start_reaches_the_shard(written: str, first_start: FirstStart) -> None:
    assert options(Settings(shard=ShardSettings(first_start=written))).first_start == first_start


def test_no_limit_on_sample_times_means_none() -> None:
    shard_options_of = options(Settings(shard=ShardSettings(max_sample_age="", max_sample_ahead="")))
    assert shard_options_of.sample_limits == SampleLimits(behind=None, ahead=None)


def test_the_settings_allow_exactly_what_the_decoder_does() -> None:
    largest = ShardSettings(max_labels=MAX_LABELS, max_label_name=MAX_TEXT, max_label_value=MAX_TEXT)
    assert options(Settings(shard=largest)).record_limits == Limits(
        labels=MAX_LABELS, label_name=MAX_TEXT, label_value=MAX_TEXT
    )
    for name, maximum in (("max_labels", MAX_LABELS), ("max_label_name", MAX_TEXT), ("max_label_value", MAX_TEXT)):
        with pytest.raises(ValueError, match=f"is not between 1 and {maximum}"):
            ShardSettings(**{name: maximum + 1})


def test_each_shard_has_its_own_folder() -> None:
    folders = {
        shard_options(
            Settings(dataset=DatasetSettings(name=name)),
            shard=shard,
            partitions=8,
            topic_retention_ms=DAY,
            data_folder=Path("/data"),
        ).folder
        for name in ("a", "b")
        for shard in range(8)
    }
    assert len(folders) == 16


def test_options_that_do_not_fit_the_topic_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"dataset.kafka_retention \(with topic metrics\) must be set"):
        options(Settings(), None)
