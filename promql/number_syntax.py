"""The syntax of numbers: which characters belong to a number, and its value."""

import math
import re

_ALPHANUMERIC = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_DECIMAL = "0123456789"
_HEXADECIMAL = "0123456789abcdefABCDEF"
_NEVER_BEHIND = frozenset("._eE")
_LARGEST_INTEGER = (1 << 63) - 1
_OCTAL = re.compile(r"0(?:_?[0-7])*")


def scan_number(text: str, start: int) -> tuple[int, bool]:  # noqa: PLR0911, PLR0912 - one for each way to stop
    """The position where a number that begins at `start` ends, and whether the scan succeeded.

    This accepts what Prometheus' lexer accepts, including its oddities: in 0x1e5, `e` is taken for an exponent, once.
    """
    position, digits = start, _DECIMAL
    if text[position : position + 2] in ("0x", "0X"):
        position, digits = position + 2, _HEXADECIMAL
        position += text.startswith("_", position)
    elif text[position : position + 1] == "0":
        position += 1
    position += text.startswith(".", position)
    position += _at(text, position) in digits
    had_dot = had_exponent = False
    while (character := _at(text, position)) in digits or character in _NEVER_BEHIND:
        if (character == "." and had_dot) or (character in "eE" and had_exponent):
            return position + 1, False
        position += 1
        if character == ".":
            had_dot = True
            if _at(text, position) in "._":
                return position + 1, False
            if digits is _HEXADECIMAL:
                return position, False
        elif character in "eE":
            had_exponent = True
            position += _at(text, position) in "+-"
            if _at(text, position) in _NEVER_BEHIND:
                return position + 1, False
            if position == len(text):
                return position, False
        elif character == "_":
            if _at(text, position) in _NEVER_BEHIND:
                return position + 1, False
            if position == len(text):
                return position, False
        else:
            while _at(text, position) in digits:
                position += 1
    return position, _at(text, position) not in _ALPHANUMERIC


def scan_rest_of_duration(text: str, start: int) -> tuple[int, bool]:
    """The position where a duration ends whose first digits end at `start`, and whether the scan succeeded."""
    position = start
    if _at(text, position) not in "smhdwy":
        return position, False
    position += 1
    position += _at(text, position) == "s"
    while _at(text, position) in _DECIMAL:
        while _at(text, position) in _DECIMAL:
            position += 1
        if _at(text, position) not in "smhdw":
            return position, False
        position += 1
        position += _at(text, position) == "s"
    if _at(text, position) in _ALPHANUMERIC:
        return position + 1, False
    return position, True


def number_value(text: str) -> float:
    """The value of a decimal, hexadecimal or octal number. Raises `ValueError` with Go's message."""
    if text[:2] in ("0x", "0X"):
        return _hexadecimal(text)
    if len(text) > 1 and _OCTAL.fullmatch(text) and (octal := int(text, 8)) <= _LARGEST_INTEGER:
        return float(octal)
    try:
        value = float(text)
    except ValueError:
        raise ValueError("invalid syntax") from None
    if math.isinf(value) and text.lower() != "inf":
        raise ValueError("value out of range")
    return value


def _hexadecimal(text: str) -> float:
    try:
        value = int(text, 16)
    except ValueError:
        raise ValueError("invalid syntax") from None
    if value > _LARGEST_INTEGER:
        raise ValueError("invalid syntax")
    return float(value)


def _at(text: str, position: int) -> str:
    """The character at a position; NUL, which is in no set of characters, at the end."""
    return text[position] if position < len(text) else "\0"
