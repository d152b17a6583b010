"""The table of Unicode scripts, compared with Python's character data."""

import configparser
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest

from strandline.promql.regular_expressions.characters import category, joined
from strandline.promql.regular_expressions.scripts import script, script_names

pytestmark = pytest.mark.unit

CHECKOUT = Path(__file__).parents[3]


def test_every_assigned_character_has_one_script() -> None:
    ranges = sorted(run for name in script_names() for run in script(name) or ())
    assert all(last < first for (_, last), (first, _) in pairwise(ranges))
    # Python's data does not include newer characters. Surrogates and private characters belong to no script.
    of_scripts = joined(ranges)
    for kind in ("L", "M", "N", "P", "S", "Z", "Cc", "Cf"):
        for first, last in category(kind) or ():
            assert any(low <= first and last <= high for low, high in of_scripts), (kind, hex(first))


@pytest.mark.parametrize("name", ["Latin", "Greek", "Cyrillic", "Arabic", "Hebrew", "Thai", "Hiragana", "Ethiopic"])
def test_the_letters_of_a_script_are_those_that_are_named_after_it(name: str) -> None:
    ranges = script(name) or ()
    for code in range(0x3000):
        if unicodedata.category(chr(code)) in {"Lu", "Ll", "Lo"}:
            is_named = unicodedata.name(chr(code)).startswith(f"{name.upper()} ")
            is_in = any(first <= code <= last for first, last in ranges)
            assert is_named <= is_in, hex(code)


def test_an_unknown_script_is_none() -> None:
    assert script("Klingon") is None
    assert script("") is None


def test_an_installed_package_has_the_table() -> None:
    packaging = configparser.ConfigParser()
    packaging.read(CHECKOUT / "setup.cfg")
    assert packaging["options.package_data"]["strandline.promql.regular_expressions"].split() == ["scripts.txt"]
