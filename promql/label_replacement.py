"""`label_replace`: sets a label from a regular expression's match in another label."""

import unicodedata
from functools import lru_cache

import numpy as np

from strandline.index.key_bytes import KeyBytes
from strandline.promql.errors import EvaluationError
from strandline.promql.labels import Texts, distinct_texts, is_valid_label_name, label_values, with_label
from strandline.promql.regular_expressions.program import Program, compile_expression
from strandline.promql.regular_expressions.syntax import InvalidRegularExpression

# A reference with more digits is a group's name, not its number.
_MAX_GROUP_NUMBER = 10**8

_compiled = lru_cache(64)(compile_expression)


def label_replace(keys: KeyBytes, target: str, replacement: str, source: str, expression: str) -> KeyBytes:
    """The keys with a label set to the replacement, where the expression matches the full value of the source label.
    The result may have equal keys. Each distinct value is matched once.
    """
    program = label_expression(expression)
    if not is_valid_label_name(target):
        raise EvaluationError(f"invalid destination label name in label_replace(): {target}")
    values = label_values(keys, source)
    number_of, first_of = distinct_texts(values)
    texts = [values.text(position).decode() for position in first_of.tolist()]
    found = program.find(texts)
    template = parse_template(replacement, program.names)
    results = [
        _expanded(template, text, positions)
        for text, positions in zip(texts, found.tolist(), strict=True)
        if positions[0] >= 0
    ]
    is_match = found[:, 0] >= 0
    result_of = np.where(is_match, np.cumsum(is_match) - 1, -1)
    return with_label(keys, target, Texts.of(result.encode() for result in results), result_of[number_of])


def label_expression(expression: str) -> Program:
    """Compile an expression that has to match a full value. A dot also matches line feeds."""
    try:
        return _compiled(f"^(?s:{expression})$")
    except InvalidRegularExpression as error:
        raise EvaluationError(
            f"invalid regular expression in label_replace(): {expression}", remedy=error.message
        ) from error


Template = tuple[str | tuple[int, ...], ...]
"""Literal texts, and references to groups. Of several groups, the first that took part in the match is used."""


def parse_template(text: str, names: tuple[str, ...]) -> Template:
    """Parse a replacement as Go does: `$1`, `$name` and `${name}` are groups, `$$` is a dollar. A name is as long as
    possible, an unknown group is empty, and any other dollar is literal.
    """
    parts: list[str | tuple[int, ...]] = []
    while text:
        plain, dollar, text = text.partition("$")
        parts.append(plain)
        if not dollar:
            break
        if text.startswith("$"):
            parts.append("$")
            text = text[1:]
            continue
        name, rest = _take_name(text)
        if not name:
            parts.append("$")
            continue
        text = rest
        number = _number(name)
        named = tuple(index for index, other in enumerate(names) if other == name)
        parts.append(named if number is None else (number,) if number < len(names) else ())
    return tuple(part for part in parts if part)


def _take_name(text: str) -> tuple[str, str]:
    """The name after a dollar, or the empty text if there is none, and the rest."""
    in_braces = text.startswith("{")
    body = text[1:] if in_braces else text
    end = next((index for index, character in enumerate(body) if not _is_in_names(character)), len(body))
    if not in_braces:
        return body[:end], body[end:]
    return (body[:end], body[end + 1 :]) if body.startswith("}", end) else ("", text)


def _is_in_names(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] == "L" or unicodedata.category(character) == "Nd"


def _number(name: str) -> int | None:
    is_number = name.isascii() and name.isdecimal() and (name == "0" or not name.startswith("0"))
    # The length is checked first: Python refuses to parse numbers with thousands of digits.
    return int(name) if is_number and len(name) <= len(str(_MAX_GROUP_NUMBER)) else None


def _expanded(template: Template, text: str, positions: list[int]) -> str:
    return "".join(part if isinstance(part, str) else _group(part, text, positions) for part in template)


def _group(numbers: tuple[int, ...], text: str, positions: list[int]) -> str:
    return next((text[positions[2 * n] : positions[2 * n + 1]] for n in numbers if positions[2 * n] >= 0), "")
