"""Look-ups as `strandline.node.query.plain_lookups` lays them out: made, read and asked over a socket the slow way."""

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from strandline.node.query.frames import PLAIN_MAGIC, PREFIX
from strandline.node.query.plain_lookups import DECLINED, KINDS, FewJson, answer_in

_NUMBERS = struct.Struct("<BqqIH")
_U16 = struct.Struct("<H")
_WAIT_S = 20.0
ALWAYS = (1, 0)


@dataclass(frozen=True)
class LookupQuestion:
    """One question; each selector is a list of labels with a value of each."""

    kind: str
    selectors: Sequence[Sequence[tuple[str, str]]]
    label: str = ""
    within: tuple[int, int] = ALWAYS
    limit: int = 1000

    def frame(self) -> bytes:
        label = self.label.encode()
        numbers = _NUMBERS.pack(KINDS.index(self.kind), *self.within, self.limit, len(label))
        body = numbers + label + b"".join(map(_packed, self.selectors))
        return PREFIX.pack(PLAIN_MAGIC, 0, len(body)) + body

    @classmethod
    def of(cls, frame: bytes) -> "LookupQuestion":
        """What a sound frame asks for."""
        magic, header, length = PREFIX.unpack_from(frame)
        assert (magic, header, PREFIX.size + length) == (PLAIN_MAGIC, 0, len(frame))
        kind, first, last, limit, size = _NUMBERS.unpack_from(frame, PREFIX.size)
        at = PREFIX.size + _NUMBERS.size
        label, rest = frame[at : at + size].decode(), frame[at + size :]
        selectors = []
        while rest:
            selector, rest = _unpacked(rest)
            selectors.append(selector)
        return cls(KINDS[kind], selectors, label, (first, last), limit)


def connected(path: Path) -> socket.socket:
    """A connection to a server of look-ups."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_WAIT_S)
    connection.connect(str(path))
    return connection


def asked(connection: socket.socket, question: bytes) -> FewJson | None:
    """The answer to a question; None if it was declined. The other side hanging up is a `ConnectionError`."""
    connection.sendall(question)
    frame = _received(connection, PREFIX.size)
    frame += _received(connection, PREFIX.unpack(frame)[2])
    return None if frame == DECLINED else answer_in(frame)


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the other side has hung up")
        data += part
    return data


def _sized(text: str) -> bytes:
    return _U16.pack(len(text.encode())) + text.encode()


def _packed(selector: Sequence[tuple[str, str]]) -> bytes:
    matchers = [_sized(label) + _U16.pack(1) + _sized(value) for label, value in selector]
    return _U16.pack(len(matchers)) + b"".join(matchers)


def _unpacked(packed: bytes) -> tuple[list[tuple[str, str]], bytes]:
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

    matchers = []
    for _ in range(number()):
        label = text()
        assert number() == 1
        matchers.append((label, text()))
    return matchers, packed
