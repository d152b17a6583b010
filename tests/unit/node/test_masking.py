import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from strandline.node.masking import HIDDEN, SecretMask
from support import pem_samples

pytestmark = pytest.mark.unit


def test_a_secret_is_masked_at_any_position() -> None:
    mask = SecretMask(["hunter2"])
    assert mask.text("login me:hunter2@host failed, hunter2") == "login me:(hidden)@host failed, (hidden)"
    assert mask.text("nothing to see") == "nothing to see"


def test_an_empty_mask_changes_nothing() -> None:
    value = {"a": [1, None, "x"]}
    assert SecretMask().value(value) is value
    assert SecretMask(["", "  "]).text("a b") == "a b"


def test_a_secret_may_be_added_later() -> None:
    mask = SecretMask(["one"])
    mask.add(["two"])
    assert mask.text("one two") == "(hidden) (hidden)"


def test_a_secret_that_begins_with_another_is_masked_completely() -> None:
    assert SecretMask(["pass", "password1"]).text("password1 pass") == "(hidden) (hidden)"


@pytest.mark.parametrize("secret", ['a"b\\c', "tab\there", "größe'x", "sp ace&=?/+%", "\x1b[0m!"])
@pytest.mark.parametrize(
    "spell",
    [
        str,
        repr,
        ascii,
        json.dumps,
        lambda text: json.dumps(text, ensure_ascii=False),
        lambda text: repr({"key": text}),
        lambda text: json.dumps({"key": [text]}),
        quote,
        lambda text: quote(text, safe=""),
        quote_plus,
        lambda text: text.replace("\\", "\\\\").replace('"', '\\"'),
    ],
)
def test_a_secret_is_masked_in_every_spelling(secret: str, spell: object) -> None:
    assert callable(spell)
    spelling = spell(secret)
    masked = SecretMask([secret]).text(f"<{spelling}>")
    assert "(hidden)" in masked
    assert spelling not in masked


def test_lines_of_a_private_key_are_hidden_one_by_one_but_not_its_frame() -> None:
    mask = SecretMask([pem_samples.KEY])
    for line in pem_samples.KEY.splitlines():
        assert mask.text(line) == (line if "-----" in line else "(hidden)")


def test_values_are_masked_at_any_depth_in_keys_and_as_numbers() -> None:
    mask = SecretMask(["hunter2", "12345678"])
    value = {"hunter2": [("x hunter2", {"deep": "hunter2"})], "n": 12345678, "f": 1.5, "t": True, "none": None, "m": 7}
    assert mask.value(value) == {
        "(hidden)": [["x (hidden)", {"deep": "(hidden)"}]],
        "n": "(hidden)",
        "f": 1.5,
        "t": True,
        "none": None,
        "m": 7,
    }
    assert mask.value(b"hunter2") == "b'(hidden)'"


def test_well_known_passwords_are_not_masked() -> None:
    assert SecretMask(["cassandra"]).text("Cassandra at cassandra:9042") == "Cassandra at cassandra:9042"


def test_a_mask_does_not_show_its_secrets() -> None:
    assert "hunter2" not in repr(SecretMask(["hunter2"]))


@given(st.text(min_size=1), st.text(), st.text())
def test_a_masked_text_contains_no_secret(secret: str, before: str, after: str) -> None:
    assume(secret.strip() and not set(secret) & set(HIDDEN))
    # No part between the markers contains the secret.
    assert all(secret not in part for part in SecretMask([secret]).text(before + secret + after).split(HIDDEN))
