"""`conf/strandline.toml` and the models say the same."""

import re
import tomllib
from pathlib import Path

import pytest

from strandline.node.settings import Settings, load_settings
from strandline.node.settings.location import key_lines
from strandline.node.settings.sources import is_table, section_models

pytestmark = pytest.mark.unit

FILE = Path(__file__).parents[3] / "conf" / "strandline.toml"
TEXT = FILE.read_text(encoding="utf-8")
NAMES = [(section, name) for section, model in section_models().items() for name in model.model_fields]


def test_the_file_s_values_are_the_defaults() -> None:
    assert load_settings(FILE, {}) == Settings()


def test_the_file_has_every_setting_in_order_and_nothing_else() -> None:
    written = [(section, name) for section, names in tomllib.loads(TEXT).items() for name in names]
    assert written == NAMES


@pytest.mark.parametrize(("section", "name"), NAMES)
def test_every_setting_has_a_comment_of_its_own(section: str, name: str) -> None:
    lines = TEXT.splitlines()
    at = key_lines(TEXT)[f"{section}.{name}"] - 1
    expected = f"[{section}.{name}]" if is_table(section, name) else f"{name} = "
    assert lines[at].startswith(expected)
    assert lines[at - 1].startswith("# ")
    comment = " ".join(re.findall(r"^# (.*)$", "\n".join(_comment_above(lines, at)), re.MULTILINE))
    assert comment.endswith(".")
    assert len(comment) > 20


def _comment_above(lines: list[str], at: int) -> list[str]:
    begin = at
    while lines[begin - 1].startswith("#"):
        begin -= 1
    return lines[begin:at]


def test_no_line_is_too_long_for_a_terminal() -> None:
    assert max(len(line) for line in TEXT.splitlines()) <= 120


def test_the_bounds_that_comments_name_are_those_that_hold() -> None:
    for server in ("kafka", "cassandra"):
        bound = re.search(rf"{server.title()}'s heap, at least (\d+)m", TEXT)
        assert bound is not None
        least = int(bound[1])
        load_settings(None, {f"STRANDLINE_STACK__{server.upper()}_HEAP": f"{least}m"})
        with pytest.raises(Exception, match=f"At least {least}m"):
            load_settings(None, {f"STRANDLINE_STACK__{server.upper()}_HEAP": f"{least - 1}m"})
