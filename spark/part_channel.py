"""The messages between an executor and the driver about a running part of a bulk job, and their framing.

An executor sends requests, and the driver answers each immediately: for how long Kafka may be used, how long to wait
before a chunk lands, or that the part is stopped. Spark has no channel for this: accumulators arrive only when a task
ends, and nothing reaches a running task.

A grant is a number of seconds, counted from before the request was sent, because clocks of different hosts can't be
compared. So it ends on the executor no later than the driver assumes.

Each message is JSON in a frame with its length and an HMAC-SHA-256 under a key that only the tasks have. The HMAC
covers a nonce of the connection, the direction and the position, so frames can't be forged, changed, replayed or
reflected. Messages are not encrypted: they contain counts and the first bad records of a part.
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
_MAX_BYTES = 16 << 20


class ChannelBroken(Retryable):
    """The connection was lost, or the other side is not authenticated."""


class PartFailed(Fatal):
    """A part has failed on an executor for a reason that is not temporary."""


class PartDelayed(Retryable):
    """A part can't be done on an executor now."""


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """A request of an executor. The first one on a connection names the part and the epoch of its lease. `counts` are
    the counts so far, `samples` is how many are to land, and `confirm` requests a check against the store.
    """

    part: tuple[str, str, int, int] | None = None
    counts: str = ""
    samples: int | None = None
    confirm: bool = False
    outcome: str = ""
    """The outcome of a finished part."""
    error: tuple[str, str, str] | None = None
    """The kind of error with which a part ended, its message and its remedy."""

    @property
    def is_end(self) -> bool:
        """Whether the task does nothing for the part after this request."""
        return bool(self.outcome) or self.error is not None

    @property
    def reported(self) -> AttemptCounts | None:
        """The counts, if the request has any."""
        return AttemptCounts.from_json(self.counts) if self.counts else None


@dataclass(frozen=True, slots=True)
class DriverReply:
    """The driver's reply. Kafka may be used for `seconds` from before the request was sent. If `wait_s` is positive,
    the task has to repeat the request after that time, because of the rate or because another task has the part. If
    `stop` is not empty, the task must stop the part for this reason.
    """

    seconds: float = 0.0
    wait_s: float = 0.0
    stop: str = ""


_KINDS: dict[str, Callable[..., StrandlineError]] = {
    "stopped": PartStopped,
    "retryable": PartDelayed,
    "fatal": PartFailed,
}


def end_request(end: PartOutcome | StrandlineError) -> TaskRequest:
    """The last request of an executor."""
    if isinstance(end, PartOutcome):
        return TaskRequest(outcome=end.to_json())
    kind = "stopped" if isinstance(end, PartStopped) else "retryable" if isinstance(end, Retryable) else "fatal"
    return TaskRequest(error=(kind, end.message, end.remedy))


def parse_end(request: TaskRequest) -> PartOutcome | StrandlineError:
    """How the part ended, from the last request of an executor."""
    if request.error is None:
        return PartOutcome.from_json(request.outcome)
    kind, message, remedy = request.error
    return _KINDS[kind](message, remedy=remedy)


class SignedFrames:
    """One side of a connection. For one thread."""

    def __init__(self, connection: socket.socket, key: bytes, nonce: bytes, *, is_driver: bool) -> None:
        self._connection, self._key, self._nonce = connection, key, nonce
        self._mine, self._theirs = (b"driver", b"executor") if is_driver else (b"executor", b"driver")
        self._sent = self._received = 0

    def send(self, message: TaskRequest | DriverReply) -> None:
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
        (length,) = _LENGTH.unpack(receive_exactly(self._connection, _LENGTH.size))
        if length > _MAX_BYTES:
            raise ChannelBroken(f"a message has {length} bytes, more than {_MAX_BYTES}")
        code, body = receive_exactly(self._connection, _CODE_BYTES), receive_exactly(self._connection, length)
        if not hmac.compare_digest(code, self._code(self._theirs, self._received, body)):
            raise ChannelBroken("a message has a wrong HMAC: its sender does not know the key")
        self._received += 1
        fields: dict[str, Any] = orjson.loads(body)
        return fields

    def _code(self, direction: bytes, number: int, body: bytes) -> bytes:
        place = self._nonce + direction + _LENGTH.pack(number)
        return hmac.digest(self._key, place + body, hashlib.sha256)


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """Receive `size` bytes. Raises `ChannelBroken`."""
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


def parse_request(fields: dict[str, Any]) -> TaskRequest:
    """An executor's request from its JSON fields."""
    part, error = fields["part"], fields["error"]
    return TaskRequest(
        tuple(part) if part is not None else None,
        fields["counts"],
        fields["samples"],
        fields["confirm"],
        fields["outcome"],
        tuple(error) if error is not None else None,
    )
