"""`conf/strandline.toml` agrees with the models."""

import re
import tomllib
from pathlib import Path

import pytest

from strandline.node.settings import Duration, Settings, SettingsError, load_settings
from strandline.node.settings.dataset import MAX_ROWS
from strandline.node.settings.location import key_lines
from strandline.node.settings.sources import is_table, section_models

pytestmark = pytest.mark.unit

FILE = Path(__file__).parents[3] / "conf" / "strandline.toml"
TEXT = FILE.read_text(encoding="utf-8")
LINES = TEXT.splitlines()
NAMES = [(section, name) for section, model in section_models().items() for name in model.model_fields]


def test_the_file_s_values_are_the_defaults() -> None:
    assert load_settings(FILE, {}) == Settings()


def test_the_file_has_exactly_the_settings_in_order() -> None:
    written = [(section, name) for section, names in tomllib.loads(TEXT).items() for name in names]
    assert written == NAMES


@pytest.mark.parametrize(("section", "name"), NAMES)
def test_every_setting_has_its_own_comment(section: str, name: str) -> None:
    at = key_lines(TEXT)[f"{section}.{name}"] - 1
    expected = f"[{section}.{name}]" if is_table(section, name) else f"{name} = "
    assert LINES[at].startswith(expected)
    assert LINES[at - 1].startswith("# ")
    assert comment(section, name).endswith(".")
    assert len(comment(section, name)) > 20


def comment(section: str, name: str) -> str:
    """The comment above a setting, as one line."""
    at = begin = key_lines(TEXT)[f"{section}.{name}"] - 1
    while LINES[begin - 1].startswith("#"):
        begin -= 1
    return " ".join(line.removeprefix("# ") for line in LINES[begin:at])


def test_no_line_is_too_long_for_a_terminal() -> None:
    assert max(len(line) for line in LINES) <= 120


def load_one(section: str, name: str, value: str) -> object:
    return getattr(getattr(load_settings(None, {f"STRANDLINE_{section}__{name}".upper(): value}), section), name)


@pytest.mark.parametrize(
    ("section", "name"), [("stack", "kafka_heap"), ("stack", "cassandra_heap"), ("shard", "java_heap")]
)
def test_the_minimum_heap_in_a_comment_is_the_actual_one(section: str, name: str) -> None:
    bound = re.search(r"at least (\d+)m", comment(section, name))
    assert bound is not None
    minimum = int(bound[1])
    environ = {f"STRANDLINE_{section}__{name}".upper(): f"{minimum}m", "STRANDLINE_SHARD__LUCENE_BUFFER": "1m"}
    load_settings(None, environ)
    with pytest.raises(SettingsError, match=f"At least {minimum}m"):
        load_one(section, name, f"{minimum - 1}m")


BOUNDED = [
    (section, name, found[1], found[2])
    for section, name in NAMES
    if (found := re.search(r"from ([\d.]*\d) to ([\d.]*\d)", comment(section, name)))
]


@pytest.mark.parametrize(("section", "name", "minimum", "maximum"), BOUNDED)
def test_the_range_in_a_comment_is_the_actual_one(section: str, name: str, minimum: str, maximum: str) -> None:
    step = 1 if "." not in maximum else 0.01
    for bound in (minimum, maximum):
        assert load_one(section, name, bound) == float(bound)
    with pytest.raises(SettingsError, match=f" from {minimum} to {maximum}"):
        load_one(section, name, str(float(maximum) + step) if step < 1 else str(int(maximum) + 1))


def test_ranges_are_found_in_comments() -> None:
    assert [f"{section}.{name}" for section, name, _, _ in BOUNDED] == [
        "dataset.groups",
        "shard.max_labels",
        "shard.max_label_name",
        "shard.flush_spread",
    ]


def test_the_intervals_in_the_comment_are_the_valid_ones() -> None:
    named = comment("dataset", "flush_interval").split("one of ")[1].split(".")[0]
    intervals = set(re.findall(r"\d+[hd]", named))
    for hours in range(1, 25):
        written = str(Duration(hours * 3_600_000))
        if written in intervals:
            load_one("dataset", "flush_interval", written)
        else:
            with pytest.raises(SettingsError, match="nor, as a number of hours, a day"):
                load_one("dataset", "flush_interval", written)


def test_the_maximum_of_rows_in_a_comment_is_the_actual_one() -> None:
    assert f"{MAX_ROWS:,} rows" in comment("dataset", "history")
