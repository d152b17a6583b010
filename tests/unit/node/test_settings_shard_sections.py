"""The validation of the settings of shards and the store."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from strandline.node.settings import ShardSettings, StoreSettings, load_settings
from strandline.node.settings.findings import Finding
from strandline.node.settings.problems import located
from strandline.node.settings.section import Section
from strandline.node.settings.units import ByteSize, Duration

pytestmark = pytest.mark.unit


def refused(section: type[Section], **values: Any) -> list[tuple[str, Finding]]:
    with pytest.raises(ValidationError) as raised:
        section(**values)
    return [(each.setting, each.finding) for each in located(raised.value)]


@pytest.mark.parametrize(
    ("section", "name", "nonsense", "what"),
    [
        (ShardSettings, "first_start", "now", "is neither one of the allowed values nor a duration"),
        (ShardSettings, "first_start", "", "is neither one of the allowed values nor a duration"),
        (ShardSettings, "first_start", 0, "is neither one of the allowed values nor a duration"),
        (ShardSettings, "first_start", "0s", "is below 1s"),
        (ShardSettings, "first_start", "3651d", "is above 3650d"),
        (ShardSettings, "series_limit", 0, "is not between 1 and 100000000"),
        (ShardSettings, "series_limit", 100_000_001, "is not between 1 and 100000000"),
        (ShardSettings, "series_limit", "2m", "is not an integer"),
        (ShardSettings, "max_labels", 0, "is not between 1 and 256"),
        (ShardSettings, "max_labels", 257, "is not between 1 and 256"),
        (ShardSettings, "max_label_name", 0, "is not between 1 and 32766"),
        (ShardSettings, "max_label_name", 32_767, "is not between 1 and 32766"),
        (ShardSettings, "max_label_value", 0, "is not between 1 and 32766"),
        (ShardSettings, "max_label_value", 32_767, "is not between 1 and 32766"),
        (ShardSettings, "max_record_size", "0k", "is below 1k"),
        (ShardSettings, "max_record_size", "2g", "is above 1g"),
        (ShardSettings, "max_record_size", 1024, "is not a size"),
        (ShardSettings, "max_record_size", "", "is not a size"),
        (ShardSettings, "max_sample_age", "0s", "is below 1s"),
        (ShardSettings, "max_sample_age", "old", "is not a duration"),
        (ShardSettings, "max_sample_ahead", "0s", "is below 1s"),
        (ShardSettings, "max_sample_ahead", 600, "is not a duration"),
        (ShardSettings, "buffer_memory", "1023k", "is below 1m"),
        (ShardSettings, "spill_limit", "1023k", "is below 1m"),
        (ShardSettings, "segment_cache", "", "is not a size"),
        (ShardSettings, "segment_cache", "2t", "is above 1t"),
        (ShardSettings, "data_dir", "/dev/null", "is not a folder"),
        (ShardSettings, "data_dir", "/dev/null/x", "is not a usable path"),
        (ShardSettings, "data_dir", 7, "is not a path"),
        (ShardSettings, "flush_spread", 0.91, "is not between 0 and 0.9"),
        (ShardSettings, "flush_spread", -0.1, "is not between 0 and 0.9"),
        (ShardSettings, "flush_spread", float("nan"), "is not between 0 and 0.9"),
        (ShardSettings, "flush_spread", float("inf"), "is not between 0 and 0.9"),
        (ShardSettings, "flush_spread", True, "is not a number"),
        (ShardSettings, "flush_spread", "80%", "is not a number"),
        (ShardSettings, "flush_spread", "nan", "is not a number"),
        (ShardSettings, "poll_records", 0, "is not between 1 and 100000"),
        (ShardSettings, "poll_records", 100_001, "is not between 1 and 100000"),
        (ShardSettings, "active_lag", 0, "is not between 1 and 100000000"),
        (ShardSettings, "index_refresh", "9ms", "is below 10ms"),
        (ShardSettings, "index_refresh", "2m", "is above 1m"),
        (ShardSettings, "lucene_buffer", "512k", "is below 1m"),
        (ShardSettings, "lucene_buffer", "2g", "is above 1g"),
        (ShardSettings, "java_heap", "63m", "is below 64m"),
        (StoreSettings, "kind", "postgres", "is not one of the allowed values"),
        (StoreSettings, "sqlite_file", "/", "is not a file"),
        (StoreSettings, "sqlite_file", "/dev/null", "is not a file"),
        (StoreSettings, "sqlite_file", "/dev/null/x", "is not a usable path"),
        (StoreSettings, "sqlite_file", True, "is not a path"),
    ],
)
def test_invalid_values_are_refused(section: type[Section], name: str, nonsense: object, what: str) -> None:
    ((setting, finding),) = refused(section, **{name: nonsense})
    assert (setting, finding.what) == (name, what)
    assert finding.remedy


def test_an_invalid_first_start_gets_both_formats_as_remedy() -> None:
    ((_, finding),) = refused(ShardSettings, first_start="latests")
    assert finding.remedy == (
        'One of earliest, latest; or: Write an integer and one of ms, s, m, h, d, such as "30s" or "5m".'
        ' Did you mean "latest"?'
    )


def test_a_first_start_is_a_word_or_a_duration() -> None:
    assert ShardSettings(first_start=" Latest ").first_start == "latest"
    assert ShardSettings(first_start="2h").first_start == Duration.parse("2h")
    assert ShardSettings(first_start="2h").model_dump()["first_start"] == "2h"
    assert ShardSettings(first_start="earliest").model_dump()["first_start"] == "earliest"


def test_limits_are_accepted() -> None:
    smallest = ShardSettings(
        first_start="1s",
        series_limit=1,
        max_labels=1,
        max_label_name=1,
        max_label_value=1,
        max_record_size="1k",
        max_sample_age="1s",
        max_sample_ahead="",
        buffer_memory="1m",
        spill_limit="1m",
        segment_cache="0m",
        flush_spread=0,
        poll_records=1,
        active_lag=1,
        index_refresh="10ms",
        lucene_buffer="1m",
        java_heap="64m",
    )
    assert (smallest.max_sample_ahead, smallest.flush_spread) == (None, 0.0)
    largest = ShardSettings(max_labels=256, max_label_name=32_766, flush_spread=0.9, lucene_buffer="1g", java_heap="2g")
    assert largest.flush_spread == 0.9


def test_lucene_s_buffer_is_at_most_half_of_the_heap() -> None:
    ((setting, finding),) = refused(ShardSettings, java_heap="127m", lucene_buffer="64m")
    assert (setting, finding.what) == ("lucene_buffer", "is more than half of java_heap, 65024k")
    assert finding.remedy == "At most 65024k, or a larger java_heap"
    assert ShardSettings(java_heap="128m", lucene_buffer="64m").lucene_buffer == ByteSize.parse("64m")


def test_a_sqlite_file_is_refused_with_another_store(tmp_path: Path) -> None:
    ((setting, finding),) = refused(StoreSettings, sqlite_file=tmp_path / "x")
    assert (setting, finding.what) == ("sqlite_file", "is given, but kind is cassandra")
    assert finding.remedy == "Set kind to sqlite, or leave this out"


def test_the_sqlite_file_is_in_the_data_folder_by_default(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"")
    for name in ("there", "to be made"):
        named = StoreSettings(kind="SQLite", sqlite_file=tmp_path / name)
        assert named.sqlite_path(Path("/data")) == tmp_path / name
    assert StoreSettings(kind="sqlite").sqlite_path(Path("/data")) == Path("/data/store.sqlite")


def test_the_data_folder_follows_the_xdg_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    in_home = tmp_path / ".local/state/strandline"
    assert ShardSettings().data_folder({}) == in_home
    assert ShardSettings().data_folder({"XDG_STATE_HOME": "relative"}) == in_home
    assert ShardSettings().data_folder({"XDG_STATE_HOME": "/var/s"}) == Path("/var/s/strandline")
    assert ShardSettings(data_dir="~/mine").data_folder({"XDG_STATE_HOME": "/var/s"}) == tmp_path / "mine"


def test_every_kind_of_value_can_be_set_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings(
        None,
        {
            "STRANDLINE_DATASET__FLUSH_INTERVAL": "15m",
            "STRANDLINE_DATASET__MARGIN": "9d",
            "STRANDLINE_DATASET__GROUPS": "8",
            "STRANDLINE_SHARD__FIRST_START": "LATEST",
            "STRANDLINE_SHARD__FLUSH_SPREAD": "0.25",
            "STRANDLINE_SHARD__MAX_SAMPLE_AHEAD": "",
            "STRANDLINE_SHARD__DATA_DIR": "data",
            "STRANDLINE_SHARD__SERIES_LIMIT": "100000000",
            "STRANDLINE_STORE__KIND": "sqlite",
            "STRANDLINE_STORE__SQLITE_FILE": "store",
        },
    )
    assert (settings.dataset.flush_interval, settings.dataset.groups) == (Duration.parse("15m"), 8)
    assert settings.dataset.margin == Duration.parse("9d")
    assert (settings.shard.first_start, settings.shard.flush_spread) == ("latest", 0.25)
    assert settings.shard.max_sample_ahead is None
    assert settings.shard.series_limit == 100_000_000
    assert (settings.shard.data_dir, settings.store.sqlite_file) == (tmp_path / "data", tmp_path / "store")


def test_the_default_heap_has_room_for_lucene_s_buffer_and_as_much_for_its_searches() -> None:
    assert ShardSettings().java_heap.bytes >= 4 * ShardSettings().lucene_buffer.bytes
