"""The labels of a series as text for messages. They may have any size."""

import json
import re
from collections.abc import Iterator
from itertools import islice

# A series may have millions of fields; only this many are read.
_FIELDS = 64
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:]*", re.ASCII)
_TAG_LABEL, _TAG_NAME, _TAG_VALUE = 0x0A, 0x0A, 0x12
_BYTES, _VARINT, _FIXED = 2, 0, {1: 8, 5: 4}


def labels_text(series: bytes, *, labels: int = 4, characters: int = 40) -> str:
    """The first labels of an encoded series, each truncated if it is long. ASCII only, on one line."""
    shown: list[str] = []
    for tag, label in islice(_fields(series), _FIELDS):
        if tag != _TAG_LABEL:
            continue
        if len(shown) == labels:
            return f"{{{', '.join(shown)}, ...}}"
        texts = {_TAG_NAME: b"", _TAG_VALUE: b"", **dict(islice(_fields(label), _FIELDS))}
        name = _cut(texts[_TAG_NAME], characters)
        name = name if _NAME.fullmatch(name) else json.dumps(name)
        shown.append(f"{name}={json.dumps(_cut(texts[_TAG_VALUE], characters))}")
    return f"{{{', '.join(shown)}}}"


def content_of(field: bytes) -> bytes:
    """The content of a valid length-delimited field."""
    _, at = _varint(field, 0)
    _, at = _varint(field, at)
    return field[at:]


def _cut(text: bytes, characters: int) -> str:
    # A character takes at most four bytes.
    shown = text[: 4 * characters].decode(errors="replace")
    return shown if len(shown) <= characters and len(text) <= 4 * characters else f"{shown[:characters]}..."


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags and contents of the length-delimited fields of a valid message, in order."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _BYTES:
            length, at = _varint(message, at)
            yield tag, message[at : at + length]
            at += length
        elif kind == _VARINT:
            _, at = _varint(message, at)
        else:
            at += _FIXED[kind]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return value, at
