"""Label names in paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.http.api.label_names import label_name_of
from strandline.node.http.errors import BadParameter

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("job", "job"),
        ("a.b", "a.b"),
        ("é", "é"),
        ("U__a_2e_b", "a.b"),
        ("U__a_2E_b", "a.b"),
        ("U__http__status_3a_", "http_status:"),
        ("U___1F600_", "😀"),
        ("U__", "U__"),
        # Not escaped, or escaped incorrectly: the name is used literally.
        ("U_a", "U_a"),
        ("U__a_b", "U__a_b"),
        ("U__a_zz_b", "U__a_zz_b"),
        ("U__a_d800_", "U__a_d800_"),
        ("U__a_110000_", "U__a_110000_"),
        ("U__a_1234567_", "U__a_1234567_"),
    ],
)
def test_names_are_read_as_prometheus_escapes_them(written: str, expected: str) -> None:
    if written == "U__":
        # An escaped empty name is invalid.
        with pytest.raises(BadParameter, match="from 1 to"):
            label_name_of(written)
        return
    assert label_name_of(written) == expected


def escaped(name: str) -> str:
    """By the rule: letters and digits unchanged, an underscore doubled, other characters by their code point."""
    parts = [
        "__" if letter == "_" else letter if letter.isascii() and letter.isalnum() else f"_{ord(letter):x}_"
        for letter in name
    ]
    return "U__" + "".join(parts)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10))
def test_any_name_survives_escaping(name: str) -> None:
    assert label_name_of(escaped(name)) == name


@pytest.mark.parametrize("name", ["", "x" * 40_000, "\udc80"])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(BadParameter):
        label_name_of(name)
