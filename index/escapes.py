"""Escapes in PromQL strings, which are those of Go."""

import re
from typing import Final

NUMBERED_ESCAPE: Final = re.compile(r"\\(?:([0-7]{3})|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}


def escape_at(text: str, position: int, quote: str) -> tuple[bytes, int] | None:
    """Return the value of the escape at the backslash, as bytes because it may be part of a character, and the escape's
    end.

    None if it is unknown, or stands for a character that does not exist.
    """
    letter = text[position + 1 : position + 2]
    if letter == quote or letter in _CONTROLS:
        return _CONTROLS.get(letter, letter).encode(), position + 2
    number = NUMBERED_ESCAPE.match(text, position)
    if number is None:
        return None
    octal, byte, short, long = number.groups()
    code = int(octal, 8) if octal else int(byte or short or long, 16)
    if (octal and code > 0xFF) or code > 0x10FFFF or ((short or long) and 0xD800 <= code <= 0xDFFF):
        return None
    return bytes([code]) if octal or byte else chr(code).encode(), number.end()
