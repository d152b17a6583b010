"""The validation of a dataset's settings: each alone, and durations that depend on each other."""

from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from strandline.node.settings import DatasetSettings, SettingsError, load_settings
from strandline.node.settings.findings import Finding
from strandline.node.settings.problems import located
from strandline.node.settings.units import Duration

pytestmark = pytest.mark.unit

HOUR = 3_600_000


def refused(**values: Any) -> list[tuple[str, Finding]]:
    with pytest.raises(ValidationError) as raised:
        DatasetSettings(**values)
    return [(each.setting, each.finding) for each in located(raised.value)]


@pytest.mark.parametrize(
    ("name", "nonsense", "what"),
    [
        ("name", "", "is not a dataset's name"),
        ("name", ".hidden", "is not a dataset's name"),
        ("name", "-x", "is not a dataset's name"),
        ("name", "a/b", "is not a dataset's name"),
        ("name", "a b", "is not a dataset's name"),
        ("name", "größe", "is not a dataset's name"),
        ("name", "metrics\n", "is not a dataset's name"),
        ("name", "x" * 245, "is not a dataset's name"),
        ("name", 7, "is not a dataset's name"),
        ("topic", ".", "is not a topic's name"),
        ("topic", "..", "is not a topic's name"),
        ("topic", "a:b", "is not a topic's name"),
        ("topic", "x" * 245, "is not a topic's name"),
        ("flush_interval", "", "is not a duration"),
        ("flush_interval", 3600, "is not a duration"),
        ("flush_interval", "500ms", "is below 1s"),
        ("flush_interval", "2d", "is above 1d"),
        ("flush_interval", "7m", "divides neither an hour nor, as a number of hours, a day"),
        ("flush_interval", "90m", "divides neither an hour nor, as a number of hours, a day"),
        ("flush_interval", "5h", "divides neither an hour nor, as a number of hours, a day"),
        ("flush_interval", "16h", "divides neither an hour nor, as a number of hours, a day"),
        ("groups", 0, "is not between 1 and 256"),
        ("groups", 257, "is not between 1 and 256"),
        ("groups", 16.0, "is not an integer"),
        ("grace", "", "is not a duration"),
        ("grace", "-1s", "is not a duration"),
        ("retention", "", "is not a duration"),
        ("retention", "0s", "is below 1s"),
        ("retention", "3651d", "is above 3650d"),
        ("stale_after", "0s", "is below 1s"),
        ("stale_after", "never", "is not a duration"),
        ("kafka_retention", "0s", "is below 1s"),
        ("kafka_retention", "3641d", "is above 3640d"),
        ("kafka_retention", -1, "is not a duration"),
        ("margin", "0s", "is below 1s"),
        ("margin", "3651d", "is above 3650d"),
        ("history", "", "is not a duration"),
        ("history", "3651d", "is above 3650d"),
    ],
)
def test_invalid_values_are_refused(name: str, nonsense: object, what: str) -> None:
    ((setting, finding),) = refused(**{name: nonsense})
    assert (setting, finding.what) == (name, what)
    assert finding.remedy


def test_an_interval_that_does_not_divide_the_day_gets_the_valid_ones_as_remedy() -> None:
    ((_, finding),) = refused(flush_interval="45m")
    assert (
        finding.remedy
        == "A duration that divides an hour, such as 5m, 15m or 30m, or one of 1h, 2h, 3h, 4h, 6h, 8h, 12h and 1d"
    )


@pytest.mark.parametrize("hours", [1, 2, 3, 4, 6, 8, 12, 24])
def test_hours_that_divide_a_day_are_intervals(hours: int) -> None:
    assert DatasetSettings(flush_interval=f"{hours}h").flush_interval == Duration(hours * HOUR)


@given(st.integers(1, 24 * 60))
def test_an_interval_in_minutes_is_accepted_if_buckets_begin_anew_with_every_day_and_hours_are_whole(
    minutes: int,
) -> None:
    """Every hour ends with a bucket, or every bucket ends with an hour, and midnight is the end of a bucket."""
    ends = set(range(0, 24 * 60 + 1, minutes))
    hours = set(range(0, 24 * 60 + 1, 60))
    fits = 24 * 60 in ends and (hours <= ends or ends <= hours)
    with nullcontext() if fits else pytest.raises(ValidationError):
        DatasetSettings(flush_interval=f"{minutes}m", history="0s")


def test_limits_are_accepted() -> None:
    dataset = DatasetSettings(name="9.a_B-c", topic="_.x-", groups=256, grace="0s", history="0s")
    assert (dataset.name, dataset.topic_name) == ("9.a_B-c", "_.x-")
    assert DatasetSettings(name="x" * 244).topic_name == "x" * 244
    small = DatasetSettings(flush_interval="1s", grace="999ms", retention="1s", stale_after="1s", history="0s")
    assert small.flush_interval < Duration.parse("1001ms")
    large = DatasetSettings(retention="3650d", margin="3650d", kafka_retention="3640d", flush_interval="1d")
    assert large.margin == large.retention


def test_the_grace_is_less_than_the_interval() -> None:
    ((setting, finding),) = refused(flush_interval="30s", history="1h", retention="1h")
    assert (setting, finding.what) == ("grace", "is not less than flush_interval, 30s")
    assert finding.remedy == "Less than 30s, or a longer flush_interval"
    DatasetSettings(flush_interval="30s", grace="29s", history="1h", retention="1h")


def test_the_retention_is_a_bucket_at_least() -> None:
    ((setting, finding),) = refused(flush_interval="12h", retention="11h")
    assert (setting, finding.what) == ("retention", "is less than flush_interval, 12h")
    assert finding.remedy == "At least 12h, or a shorter flush_interval"
    DatasetSettings(flush_interval="12h", retention="12h")


def test_stale_after_does_not_exceed_the_retention() -> None:
    ((setting, finding),) = refused(stale_after="8d")
    assert (setting, finding.what) == ("stale_after", "is more than retention, 7d")
    assert finding.remedy == "At most 7d, or a longer retention"
    DatasetSettings(stale_after="7d")


def test_a_margin_below_kafka_s_retention_and_two_intervals_is_refused() -> None:
    ((setting, finding),) = refused(kafka_retention="3d", margin="73h")
    assert setting == "margin"
    assert finding.what == (
        "is less than Kafka's retention, 3d, and two flush intervals of 1h: a node that was down could find its keys"
        " expired"
    )
    assert finding.remedy == 'At least 74h, or "" for that'
    assert DatasetSettings(kafka_retention="3d", margin="74h").margin == Duration.parse("74h")


def test_a_margin_below_two_intervals_is_refused_whatever_kafkas_retention() -> None:
    ((setting, finding),) = refused(flush_interval="6h", margin="11h")
    assert (setting, finding.remedy) == ("margin", 'At least 12h, or "" for that')
    assert finding.what.startswith("is less than two flush intervals of 6h: ")
    DatasetSettings(flush_interval="6h", margin="12h")


@pytest.mark.parametrize(
    ("values", "setting", "rows", "made_of", "lower"),
    [
        (
            {"flush_interval": "1m"},
            "flush_interval",
            "905,760",
            "(7d of retention + 30d of history) / 1m x (16 groups + 1)",
            "history",
        ),
        (
            {"groups": 256, "retention": "60d"},
            "groups",
            "555,120",
            "(60d of retention + 30d of history) / 1h x (256 groups + 1)",
            "history",
        ),
        (
            {"retention": "3650d"},
            "retention",
            "1,501,440",
            "(3650d of retention + 30d of history) / 1h x (16 groups + 1)",
            "history",
        ),
        (
            {"history": "3650d"},
            "history",
            "1,492,056",
            "(7d of retention + 3650d of history) / 1h x (16 groups + 1)",
            "history",
        ),
        (
            {"margin": "3650d"},
            "margin",
            "1,492,056",
            "(7d of retention + 3650d of margin) / 1h x (16 groups + 1)",
            "margin",
        ),
        (
            {"kafka_retention": "3640d"},
            "kafka_retention",
            "1,488,010",
            "(7d of retention + 87362h of margin) / 1h x (16 groups + 1)",
            "kafka_retention",
        ),
    ],
)
def test_a_manifest_that_would_have_too_many_rows_is_refused(
    values: dict[str, Any], setting: str, rows: str, made_of: str, lower: str
) -> None:
    ((found, finding),) = refused(**values)
    assert (found, finding.what) == (
        setting,
        f"makes {rows} manifest rows per shard, and the maximum is 500,000: {made_of}",
    )
    assert finding.remedy == f"Raise flush_interval, or lower groups, retention or {lower}"


def test_a_manifest_may_have_half_a_million_rows_and_no_more() -> None:
    """With one group, a bucket has two rows: the maximum is 250,000 buckets of one second."""
    values = {"flush_interval": "1s", "grace": "0s", "groups": 1, "history": "0s", "margin": "2s"}
    DatasetSettings(**values, retention="249998s")
    ((setting, finding),) = refused(**values, retention="249999s")
    assert setting == "flush_interval"
    assert finding.what.startswith("makes 500,002 manifest rows per shard")
    # A partial bucket has a row, too.
    refused(**values, retention="249998001ms")


def test_a_conflict_between_settings_is_reported_at_the_one_that_was_set() -> None:
    with pytest.raises(SettingsError) as raised:
        load_settings(None, {"STRANDLINE_DATASET__FLUSH_INTERVAL": "10s"})
    assert [(each.setting, each.value_shown, each.where) for each in raised.value.problems] == [
        ("dataset.grace", "", "environment variable STRANDLINE_DATASET__FLUSH_INTERVAL"),
        ("dataset.flush_interval", '"10s"', "environment variable STRANDLINE_DATASET__FLUSH_INTERVAL"),
    ]


def test_empty_durations_stay_empty_and_are_written_as_such() -> None:
    dataset = DatasetSettings(stale_after="", kafka_retention="", margin="", topic="")
    assert dataset == DatasetSettings()
    assert dataset.model_dump() == {
        "name": "metrics",
        "topic": "",
        "flush_interval": "1h",
        "groups": 16,
        "grace": "30s",
        "retention": "7d",
        "stale_after": "",
        "kafka_retention": "",
        "margin": "",
        "history": "30d",
    }


def test_the_default_topic_has_the_name_of_the_dataset() -> None:
    assert DatasetSettings(name="power").topic_name == "power"
    assert DatasetSettings(name="power", topic="meters").topic_name == "meters"
