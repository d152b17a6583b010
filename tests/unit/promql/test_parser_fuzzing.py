"""For any text, the parser returns a tree or raises `ParseError`."""

from random import Random

import pytest

from strandline.promql.errors import ParseError
from strandline.promql.parser import parse
from support.promql_expressions import expressions

pytestmark = pytest.mark.unit

BYTES = 70_000
CHARACTERS = 70_000
MUTATIONS = 60_000
LONG, LENGTH = 300, 10_000
PIECES = (
    *"()[]{},:=!<>+-*/%^@#\"'`\\\n \t.0_eExX",
    *("5m", "1e3", "0x", "inf", "sum", "by", "on", "offset", "start()", "step()", "bool", "=~", "!~", "[5m]", "[1m:]"),
    *("max_of(", "group_left", "fill(", "unless", "ü", "\ufffd", "\ud800", "\U0001f600", '"\\u12', "{a=~'(", "rate("),
)


def parse_or_refuse(query: str) -> bool:
    """Whether it was parsed."""
    try:
        parse(query)
    except ParseError as error:
        assert 0 <= error.span.start <= error.span.end <= len(query), query  # noqa: PT017
        return False
    return True


def test_random_bytes():
    random = Random(1)  # noqa: S311
    for _ in range(BYTES):
        parse_or_refuse(random.randbytes(random.randrange(24)).decode(errors="surrogateescape"))


def test_random_characters_of_the_language():
    random = Random(2)  # noqa: S311
    for _ in range(CHARACTERS):
        parse_or_refuse("".join(random.choices(PIECES, k=random.randrange(1, 12))))


def test_long_random_bytes():
    random = Random(5)  # noqa: S311
    for _ in range(LONG):
        parse_or_refuse(random.randbytes(LENGTH).decode(errors="surrogateescape"))


def test_long_random_tokens():
    """Mostly plausible tokens: with random ones, parsing would fail after a few tokens."""
    random = Random(6)  # noqa: S311
    for _ in range(LONG):
        parse_or_refuse("".join(random.choices(PIECES, k=LENGTH))[:LENGTH])
    for _ in range(LONG):
        pieces = random.sample(PIECES, k=random.randrange(1, 5))
        text = "".join(random.choices(("(", "-", "m", " + ", *pieces), k=LENGTH))
        parse_or_refuse(text[:LENGTH])


def test_long_expressions_with_a_random_change():
    """Most of these are parsed to the end."""
    random = Random(7)  # noqa: S311
    pool = list(expressions(seed=8, count=300, depth=1))
    for _ in range(LONG // 10):
        query = ", ".join(random.choices(pool, k=LENGTH // 20))[:LENGTH]
        start = random.randrange(len(query))
        parse_or_refuse(f"label_join({query[:start]}{random.choice(PIECES)}{query[start:]})")


def test_expressions_with_a_random_change():
    random = Random(3)  # noqa: S311
    pool = list(expressions(seed=4, count=2000, depth=2))
    parsed = 0
    for _ in range(MUTATIONS):
        query = random.choice(pool)
        start = random.randrange(len(query) + 1)
        end = min(len(query), start + random.choice((0, 0, 1, 2, 7)))
        change = random.randrange(3)
        inserted = random.choice(PIECES) if change else query[end : end + random.randrange(9)]
        parsed += parse_or_refuse(query[:start] + inserted + query[end:])
    # Otherwise the test would only cover the first characters.
    assert MUTATIONS // 20 < parsed < MUTATIONS // 2
