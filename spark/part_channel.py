"""What an executor and the driver say to each other about a part that is being run, and how it travels.

An executor asks, and the driver answers each question at once: for how long Kafka may be used, how long to wait before
a chunk lands, or that the part is to be given up. Accumulators would arrive with the end of a task only, and nothing of
Spark's reaches a task that runs.

A grant is a number of seconds, which count from before the question was asked: clocks of different hosts can't be
compared. So it ends on the executor no later than the driver reckons.

Each message is JSON in a frame with its length and a code (HMAC-SHA-256) under a key that only the tasks have. The code
covers a number of the connection's own, the direction and the position, so that no frame can be made, changed, repeated
or sent back by others. What is said is not encrypted: counts, and the first bad records of a part.
"""

import hashlib
import hmac
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from strandline.errors import Fatal, Retryable, StrandlineError
from strandline.jobs.counts import AttemptCounts
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.running import PartStopped

NONCE_BYTES: Final = 16
_LENGTH = struct.Struct(">I")
_CODE_BYTES = 32
_MOST_BYTES = 16 << 20


class ChannelBroken(Retryable):
    """The other side is gone, or is none of ours."""


class PartFailed(Fatal):
    """A part has failed on an executor, for a reason that stays."""


class PartDelayed(Retryable):
    """A part can't be done on an executor now."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A question of an executor. The first one of a connection names the part and the epoch of its lease. `counts` is
    what was counted by now, `samples` how many are to land, and `confirm` asks for what the store says.
    """

    part: tuple[str, str, int, int] | None = None
    counts: str = ""
    samples: int | None = None
    confirm: bool = False
    outcome: str = ""
    """Of a part that is done."""
    error: tuple[str, str, str] | None = None
    """Which kind of error a part has ended with, its message and its remedy."""

    @property
    def is_end(self) -> bool:
        """Whether nothing of the part is done after this."""
        return bool(self.outcome) or self.error is not None

    @property
    def reported(self) -> AttemptCounts | None:
        """What was counted, if this tells."""
        return AttemptCounts.from_json(self.counts) if self.counts else None


@dataclass(frozen=True, slots=True)
class Answer:
    """The driver's answer. Kafka may be used for `seconds` from before the question was asked. `wait_s`: ask again
    after so long, be it for the samples, or for a part that another task still has. `stop`: give the part up, and why.
    """

    seconds: float = 0.0
    wait_s: float = 0.0
    stop: str = ""


_KINDS: dict[str, Callable[..., StrandlineError]] = {
    "stopped": PartStopped,
    "retryable": PartDelayed,
    "fatal": PartFailed,
}


def ended_with(end: PartOutcome | StrandlineError) -> Ask:
    """What an executor says last."""
    if isinstance(end, PartOutcome):
        return Ask(outcome=end.to_json())
    kind = "stopped" if isinstance(end, PartStopped) else "retryable" if isinstance(end, Retryable) else "fatal"
    return Ask(error=(kind, end.message, end.remedy))


def end_of(ask: Ask) -> PartOutcome | StrandlineError:
    """What an executor has said last."""
    if ask.error is None:
        return PartOutcome.from_json(ask.outcome)
    kind, message, remedy = ask.error
    return _KINDS[kind](message, remedy=remedy)


class Frames:
    """One side of a connection. For one thread."""

    def __init__(self, connection: socket.socket, key: bytes, nonce: bytes, *, is_driver: bool) -> None:
        self._connection, self._key, self._nonce = connection, key, nonce
        self._mine, self._theirs = (b"driver", b"executor") if is_driver else (b"executor", b"driver")
        self._sent = self._received = 0

    def send(self, message: Ask | Answer) -> None:
        """Raises `ChannelBroken`."""
        body = orjson.dumps(message)
        code = self._code(self._mine, self._sent, body)
        self._sent += 1
        try:
            self._connection.sendall(_LENGTH.pack(len(body)) + code + body)
        except OSError as error:
            raise ChannelBroken(f"the connection is broken: {error}") from error

    def receive(self) -> dict[str, Any]:
        """The fields of the next message. Raises `ChannelBroken`."""
        (length,) = _LENGTH.unpack(received(self._connection, _LENGTH.size))
        if length > _MOST_BYTES:
            raise ChannelBroken(f"a message has {length} bytes, more than {_MOST_BYTES}")
        code, body = received(self._connection, _CODE_BYTES), received(self._connection, length)
        if not hmac.compare_digest(code, self._code(self._theirs, self._received, body)):
            raise ChannelBroken("a message has a wrong code: its sender does not know the key")
        self._received += 1
        fields: dict[str, Any] = orjson.loads(body)
        return fields

    def _code(self, direction: bytes, number: int, body: bytes) -> bytes:
        place = self._nonce + direction + _LENGTH.pack(number)
        return hmac.digest(self._key, place + body, hashlib.sha256)


def received(connection: socket.socket, size: int) -> bytes:
    """So many bytes. Raises `ChannelBroken`."""
    found = bytearray()
    while len(found) < size:
        try:
            more = connection.recv(size - len(found))
        except OSError as error:
            raise ChannelBroken(f"the connection is broken: {error}") from error
        if not more:
            raise ChannelBroken("the connection was closed")
        found += more
    return bytes(found)


def request_of(fields: dict[str, Any]) -> Ask:
    """An executor's message."""
    part, error = fields["part"], fields["error"]
    return Ask(
        tuple(part) if part is not None else None,
        fields["counts"],
        fields["samples"],
        fields["confirm"],
        fields["outcome"],
        tuple(error) if error is not None else None,
    )
