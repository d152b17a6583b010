"""Pairs of equivalent regular expressions in RE2's and Python's syntax: a model for what RE2 matches."""

import re
from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

_LETTERS = "aAb.\n"
# All texts of up to three letters, so that expressions over the same letters match some and not others.
ASCII_TEXTS = ["".join(letters) for length in range(4) for letters in product(_LETTERS, repeat=length)]
UNICODE_TEXTS = ["".join(letters) for length in range(3) for letters in product("aAé€😀\n", repeat=length)]


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression in both syntaxes."""

    re2: str
    python: str

    def matches(self, text: str) -> bool:
        """Whether it matches a complete text, according to Python."""
        return re.fullmatch(self.python, text, re.DOTALL) is not None


def _same(*spellings: str) -> list[Expression]:
    return [Expression(spelling, spelling) for spelling in spellings]


_TEXTS = [
    *_same("a", "b", "A", "ab", "\n", r"\.", r"\x41", r"\n", "", "]", "}"),
    Expression(r"\Qa.\E", r"a\."),
    Expression(r"\101", "A"),
    Expression(r"\x{62}", "b"),
]
_CLASSES = _same(".", ".*", ".+", "[ab]", "[^a]", "[a-b.]", r"[\.b]", r"\w", r"\d")
# Python's $ also matches before a final newline.
_ANCHORS = [
    Expression("^", r"\A"),
    Expression("$", r"\Z"),
    Expression(r"\A", r"\A"),
    Expression(r"\z", r"\Z"),
    *_same(r"\b"),
]
_UNICODE = _same("a", "é", "€", "😀", "[é😀]", "[^é]", ".", ".*", ".+", "")
_REPEATS = ["*", "+", "?", "*?", "+?", "??", "{0}", "{2}", "{1,2}", "{0,1}", "{1,}"]


def _joined(pattern: str, *parts: Expression) -> Expression:
    return Expression(pattern.format(*(part.re2 for part in parts)), pattern.format(*(part.python for part in parts)))


def _repeated(part: Expression, repeat: str) -> Expression:
    return Expression(f"(?:{part.re2}){repeat}", f"(?:{part.python}){repeat}")


def _from(leaves: list[Expression]) -> st.SearchStrategy[Expression]:
    return st.recursive(
        st.sampled_from(leaves),
        lambda inner: st.one_of(
            st.builds(_joined, st.just("{}{}"), inner, inner),
            st.builds(_joined, st.just("{}{}{}"), inner, inner, inner),
            st.builds(_joined, st.just("(?:{}|{})"), inner, inner),
            st.builds(_joined, st.sampled_from(["({})", "(?i:{})", "(?-s:{})", "(?s:{})"]), inner),
            st.builds(_repeated, inner, st.sampled_from(_REPEATS)),
        ),
        max_leaves=6,
    )


def expressions() -> st.SearchStrategy[Expression]:
    """Expressions over `ASCII_TEXTS`, with anchors, flags, escapes, classes, repetitions and empty alternatives."""
    inner = _from([*_TEXTS, *_CLASSES, *_ANCHORS])
    return st.one_of(
        inner,
        st.builds(_joined, st.just("{}|{}"), inner, inner),
        st.builds(_joined, st.sampled_from(["{}|", "|{}", "{}.*", "a{}", "(?i){}"]), inner),
    )


def unicode_expressions() -> st.SearchStrategy[Expression]:
    """Expressions over `UNICODE_TEXTS`, without anchors."""
    return _from(_UNICODE)
