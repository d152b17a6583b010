"""Label sets as error messages show them."""

import re
from typing import Final

from strandline.index.documents import decode_part_key

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES: Final = {
    '"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"
}  # fmt: skip


def quoted(text: str) -> str:
    """As Go's `%q` has it."""
    return f'"{"".join(map(_escaped, text))}"'


def shown_labels(key: bytes) -> str:
    """As Prometheus has it: {__name__="up", job="api"}."""
    labels = decode_part_key(key).items()
    return "{" + ", ".join(f"{_shown_name(name)}={quoted(value)}" for name, value in labels) + "}"


def _shown_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
