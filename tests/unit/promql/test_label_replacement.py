"""`label_replace` and its regular expressions, with the results of Go's package regexp."""

import numpy as np
import pytest

from strandline.index.documents import decode_part_key, encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.promql.errors import EvaluationError
from strandline.promql.label_replacement import label_replace

pytestmark = pytest.mark.unit


def made(*label_sets: dict[str, str]) -> KeyBytes:
    keys = [encode_part_key(labels) for labels in label_sets]
    return KeyBytes(
        np.cumsum([0, *map(len, keys)], dtype=np.int64), np.frombuffer(bytearray(b"".join(keys)), dtype=np.uint8)
    )


def read(keys: KeyBytes) -> list[dict[str, str]]:
    return [decode_part_key(keys.key(position)) for position in range(len(keys))]


def replaced(expression: str, text: str, replacement: str) -> str | None:
    """The new value of the label; None if the expression does not match."""
    [labels] = read(label_replace(made({"s": text, "t": "old"}), "t", replacement, "s", expression))
    return None if labels.get("t") == "old" else labels.get("t", "")


def test_only_keys_whose_whole_value_matches_are_changed() -> None:
    keys = made({"s": "a1"}, {"s": "b1", "t": "x"}, {"t": "x"}, {"s": "xa1"}, {"s": "a1"})
    assert read(label_replace(keys, "t", "<$1>", "s", "a(.)")) == [
        {"s": "a1", "t": "<1>"},
        {"s": "b1", "t": "x"},
        {"t": "x"},
        {"s": "xa1"},
        {"s": "a1", "t": "<1>"},
    ]


def test_a_missing_label_is_empty_and_an_empty_result_deletes_the_label() -> None:
    keys = made({"s": "a", "t": "x"}, {"t": "x"})
    assert read(label_replace(keys, "t", "new", "absent", "")) == [{"s": "a", "t": "new"}, {"t": "new"}]
    assert read(label_replace(keys, "t", "$1", "s", "(b*)a")) == [{"s": "a"}, {"t": "x"}]
    assert read(label_replace(made(), "t", "$1", "s", "a")) == []


@pytest.mark.parametrize(
    ("expression", "text", "groups"),
    [
        # The first alternative has priority, not the longest.
        ("(a|ab)(c|bcd)?.*", "abcd", "a|bcd"),
        ("(a*?)(a*)", "aaa", "|aaa"),
        ("(?U)(a*)(a*?)", "aaa", "|aaa"),
        ("(a+)(a{1,2}?)(a*)", "aaaa", "aaa|a|"),
        # The capture of a repeated group is that of the last repetition that consumed a character.
        ("(a|b)*", "ab", "b"),
        ("(|a)*", "aa", "a"),
        ("(a|)+", "aa", "a"),
        ("(a*)+", "aa", "aa"),
        ("(?:(a)|(b))+", "ab", "a|b"),
        # A dot matches line feeds, unless the flag is cleared.
        ("(.*)", "a\nb", "a\nb"),
        ("(?-s)(.*)", "a\nb", None),
        ("(a$)?.*", "a\n", ""),
        ("(?m)(a$)?[^x]*", "a\n", "a"),
        ("(?m:a\n^(b))", "a\nb", "b"),
        # Classes are ASCII's.
        (r"(\d*)(.*)", "1٢", "1|٢"),
        (r"(\w+)\b(.*)", "aä", "a|ä"),
        (r"(\s*)(.*)", " \v", " |\v"),
        (r"([[:upper:]]+)([^[:^digit:]])", "AB7", "AB|7"),
        (r"(\pL+)(\PL)", "aé1", "aé|1"),
        (r"([\p{Lu}\-x]+)", "Ä-x", "Ä-x"),
        (r"(\p{Han}+)(\p{Hiragana}*)(\P{Greek}+)", "日本のabc", "日本|の|abc"),
        (r"([\p{Greek}a]+)(\p{^Greek})(.*)", "βaωж", "βaω|ж|"),
        (r"(?i)(\p{Greek}+)", "\u00b5", "\u00b5"),
        ("([]a]+)", "a]", "a]"),
        ("([a-]+)", "-a", "-a"),
        # Unicode's simple case folding.
        ("(?i)(k+)(s+)", "kK\u212asS\u017f", "kK\u212a|sS\u017f"),
        ("(?i:[^k]+)", "\u212a", None),
        ("(?i)(straße)", "STRASSE", None),
        # Escapes, and braces that are not a repetition.
        (r"(\Qa.b*\E)(\x41\x{e4}\101)", "a.b*AäA", "a.b*|AäA"),
        ("(a{,2})", "a{,2}", "a{,2}"),
        ("((?:a{2}){2})(a*)", "aaaaa", "aaaa|a"),
        # The expression is put between ^(?s: and )$ as text.
        ("a)|(b", "xb", "b"),
        # The time is linear, even if there are very many ways to match.
        ("((a+)+)+b", "a" * 2000, None),
    ],
)
def test_expressions_match_as_in_go(expression: str, text: str, groups: str | None) -> None:
    count = 1 if groups is None else groups.count("|") + 1
    assert replaced(expression, text, "|".join(f"${{{n}}}" for n in range(1, count + 1))) == groups


@pytest.mark.parametrize(
    ("replacement", "result"),
    [
        ("$1", "a"),
        ("${1}x", "ax"),
        # A name is as long as possible.
        ("$1x", ""),
        ("$1-$2", "a-b"),
        ("$0", "abc"),
        ("$$1", "$1"),
        ("$", "$"),
        ("a$", "a$"),
        ("$$", "$"),
        ("${", "${"),
        ("${1", "${1"),
        ("${}", "${}"),
        ("$-", "$-"),
        ("$9", ""),
        ("$01", ""),
        ("$999999999999", ""),
        ("$name.$none.", "b.."),
        # Of several groups with one name, the first that matched is used.
        ("${twice}", "c"),
        ("ä$1ä", "ä"),
        ("ä${1}ä", "äaä"),
    ],
)
def test_replacements_are_read_as_in_go(replacement: str, result: str) -> None:
    assert replaced("(a)(?P<name>b)(?P<twice>x)?(?<twice>c)", "abc", replacement) == result


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "(",
            ")",
            "(a",
            "*",
            "a**",
            "a*+",
            "a{2}{3}",
            "[",
            "[a",
            "[z-a]",
            "[[:foo:]]",
            "[a-",
            "\\",
            r"\1",
            r"\e",
            r"\C",
        ),
        *(
            "(?=a)",
            "(?z)",
            "(?P<a-b>x)",
            "(?P=a)",
            "a{2,1}",
            "a{1001}",
            "(a{40}){40}",
            r"\x{110000}",
            r"\xg",
            r"[a-\d]",
        ),
        *(r"\p{Nonsense}", r"\pX"),
        # Go accepts these. We limit depth and size, and Unicode classes need their exact names.
        *("(" * 200 + ")" * 200, ".{1000}" * 11, r"\p{greek}"),
    ],
)
def test_invalid_expressions_are_rejected(expression: str) -> None:
    with pytest.raises(EvaluationError, match=r"invalid regular expression in label_replace\(\): ") as refused:
        label_replace(made({"s": "a"}), "t", "x", "s", expression)
    assert refused.value.message.endswith(expression)
    assert refused.value.remedy


def test_the_error_names_an_unknown_class() -> None:
    with pytest.raises(EvaluationError) as refused:
        label_replace(made({"s": "a"}), "t", "x", "s", r"a\p{Klingon}")
    assert "unknown Unicode category or script 'Klingon'" in refused.value.remedy


def test_an_invalid_target_label_is_rejected() -> None:
    with pytest.raises(EvaluationError, match=r"invalid destination label name in label_replace\(\): $"):
        label_replace(made({"s": "a"}), "", "x", "s", "a")
