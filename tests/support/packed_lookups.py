"""Lookups in the layout of `strandline.node.query.lookup_frames`, and their answers: encoded and decoded independently
of the code under test.
"""

import json
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from strandline.index.documents import decode_part_key
from strandline.node.query.answers import Answer, SeriesAnswer, TermsAnswer
from strandline.node.query.shard_requests import LABEL_NAMES, LABEL_VALUES, SERIES

KINDS = (SERIES, LABEL_NAMES, LABEL_VALUES)
"""The kinds, by their numbers."""
ALWAYS = (1, 0)
PREFIX = struct.Struct("<4sIQ")
MAGIC, VERSION = b"SLQ1", 3
HEAD = struct.Struct("<BqqIH")
"""Of a lookup, with the length of the label."""
_U16, _U32 = struct.Struct("<H"), struct.Struct("<I")
_WAIT_S = 60.0
Value = str | tuple[str, ...]
"""The value that a label must have, or several values of which it must have one."""


@dataclass(frozen=True)
class Found:
    """An answer: series as labels, or names or values and how many series have each."""

    results: list[dict[str, str]] | list[str]
    counts: list[int] | None = None

    @classmethod
    def of(cls, answer: Answer) -> "Found":
        """The content of a complete answer."""
        assert not answer.warnings
        if isinstance(answer, SeriesAnswer):
            assert not answer.more
            return cls([decode_part_key(answer.keys.key(place)) for place in range(len(answer.keys))])
        assert isinstance(answer, TermsAnswer)
        assert (answer.more, answer.of_all) == (False, False)
        return cls(answer.terms(), answer.counts.tolist())


@dataclass(frozen=True)
class PackedLookup:
    """A lookup. Each selector is a list of labels with the value or values of each."""

    kind: str
    selectors: Sequence[Sequence[tuple[str, Value]]]
    label: str = ""
    within: tuple[int, int] = ALWAYS
    limit: int = 1000

    def frame(self) -> bytes:
        label, selectors = self.label.encode(), b"".join(map(_packed, self.selectors))
        head = HEAD.pack(KINDS.index(self.kind), *self.within, self.limit, len(label))
        return framed(head + label + _U32.pack(len(selectors)) + selectors)

    @classmethod
    def of(cls, frame: bytes) -> "PackedLookup":
        """The lookup of a valid frame."""
        kind, fields, ((column, length),), body = _read(frame)
        assert (kind, fields, column) == ("lookup", {}, "|u1")
        assert body[length:] == bytes(-length % 8)
        number, first, last, limit, size = HEAD.unpack_from(body)
        at = HEAD.size + size
        label, (selectors,) = body[HEAD.size : at].decode(), _U32.unpack_from(body, at)
        rest = body[at + _U32.size : length]
        assert len(rest) == selectors
        found = []
        while rest:
            selector, rest = _unpacked(rest)
            found.append(selector)
        return cls(KINDS[number], found, label, (first, last), limit)


def framed(packed: bytes) -> bytes:
    """A frame of the link with one column."""
    header = b'{"version":3,"kind":"lookup","fields":{},"columns":[["|u1",%d]]}' % len(packed)
    header += b" " * (-len(header) % 8)
    body = packed + bytes(-len(packed) % 8)
    return PREFIX.pack(MAGIC, len(header), len(body)) + header + body


def connected(path: Path) -> socket.socket:
    """A connection to a lookup server."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_WAIT_S)
    connection.connect(str(path))
    return connection


def answer_to(connection: socket.socket, lookup: bytes) -> Found | None:
    """The answer to a lookup; None if it was declined. Raises `ConnectionError` if the server closes the connection."""
    return read_answer(answer_frame(connection, lookup))


def answer_frame(connection: socket.socket, lookup: bytes) -> bytes:
    """The frame of the answer to a lookup."""
    connection.sendall(lookup)
    prefix = _received(connection, PREFIX.size)
    _, header, body = PREFIX.unpack(prefix)
    return prefix + _received(connection, header + body)


def read_answer(frame: bytes) -> Found | None:
    """The answer of a valid frame; None if it is `declined`."""
    kind, fields, columns, body = _read(frame)
    if kind == "declined":
        assert (fields, columns, body) == ({}, [], b"")
        return None
    assert fields["warnings"] == []
    assert fields["more"] is False
    offsets, body = _column(columns.pop(0), "<i8", body)
    text, body = _column(columns.pop(0), "|u1", body)
    assert (offsets[0], offsets[-1]) == (0, len(text))
    parts = [bytes(text[start:end]) for start, end in pairwise(offsets)]
    if kind == "series":
        assert (columns, body) == ([], b"")
        return Found([decode_part_key(part) for part in parts])
    assert kind == "terms"
    assert fields["of_all"] is False
    counts, body = _column(columns.pop(0), "<i8", body)
    assert (len(counts), columns, body) == (len(parts), [], b"")
    return Found([part.decode() for part in parts], list(counts))


def _read(frame: bytes) -> tuple[str, dict[str, object], list[list[object]], bytes]:
    magic, header, body = PREFIX.unpack_from(frame)
    assert magic == MAGIC
    assert header % 8 == body % 8 == 0
    assert len(frame) == PREFIX.size + header + body
    decoded = json.loads(frame[PREFIX.size : PREFIX.size + header])
    assert decoded["version"] == VERSION
    return decoded["kind"], decoded["fields"], decoded["columns"], frame[PREFIX.size + header :]


def _column(described: list[object], kind: str, body: bytes) -> tuple[tuple[int, ...] | bytes, bytes]:
    """The first column, and the bytes after it."""
    assert described[0] == kind
    length = int(str(described[1]))
    size = length if kind == "|u1" else 8 * length
    end = size + -size % 8
    assert body[size:end] == bytes(end - size)
    column = body[:size]
    assert len(column) == size
    return (column if kind == "|u1" else struct.unpack(f"<{length}q", column)), body[end:]


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the server has closed the connection")
        data += part
    return data


def _sized(text: str) -> bytes:
    return _U16.pack(len(text.encode())) + text.encode()


def _packed(selector: Sequence[tuple[str, Value]]) -> bytes:
    matchers = []
    for label, value in selector:
        values = (value,) if isinstance(value, str) else value
        matchers.append(_sized(label) + _U16.pack(len(values)) + b"".join(map(_sized, values)))
    return _U16.pack(len(matchers)) + b"".join(matchers)


def _unpacked(packed: bytes) -> tuple[list[tuple[str, Value]], bytes]:
    def number() -> int:
        nonlocal packed
        (found,) = _U16.unpack_from(packed)
        packed = packed[_U16.size :]
        return int(found)

    def text() -> str:
        nonlocal packed
        size = number()
        found, packed = packed[:size], packed[size:]
        assert len(found) == size
        return found.decode()

    matchers: list[tuple[str, Value]] = []
    for _ in range(number()):
        label = text()
        values = tuple(text() for _ in range(number()))
        matchers.append((label, values[0] if len(values) == 1 else values))
    return matchers, packed
