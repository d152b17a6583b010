"""Questions, answers and errors as bytes, for the link between the front and a shard's process.

A frame is a prefix with two lengths, a header in JSON, and a body. The header names the version, the kind of message,
its plain fields, and its columns in order, each with its type and length, and is padded with blanks; the body has these
columns as they lie in memory, little endian. Header, body and every column begin at a multiple of eight bytes. Both
ends are of one program on one machine. All the same nothing is trusted: a frame that is not what it says raises
`FrameDamaged`, and nothing of it is used.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from strandline.errors import Fatal

VERSION = 3
# The header has at most the tops of a cardinality; the body at most an answer at the limits of the settings.
MAX_HEADER, MAX_BODY = 1 << 28, 1 << 36
PREFIX = struct.Struct("<4sIQ")
_MAGIC = b"SLQ1"
_ALIGNED = 8
_TYPES: Mapping[str, "np.dtype[Any]"] = {name: np.dtype(name) for name in ("<i8", "<f8", "|u1")}
_NAMES: Mapping["np.dtype[Any]", str] = {kind: name for name, kind in _TYPES.items()}
_SHORT_COLUMN = 4 << 10
_PADDING = bytes(_ALIGNED)

Column = npt.NDArray[Any]
Buffer = bytes | memoryview


class FrameDamaged(Fatal):
    """Bytes on the link that are no frame, or one of another version."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a frame says: its kind, fields that JSON can say, and columns."""

    kind: str
    fields: Mapping[str, Any]
    columns: Sequence[Column] = ()


def encode(message: Message) -> list[Buffer]:
    """The frame as buffers to be sent one behind the other; columns are not copied if they lie in one piece."""
    columns = [_as_sent(column) for column in message.columns]
    header = orjson.dumps(
        {
            "version": VERSION,
            "kind": message.kind,
            "fields": message.fields,
            "columns": [[_NAMES[column.dtype], len(column)] for column in columns],
        }
    )
    header += b" " * (-len(header) % _ALIGNED)
    buffers: list[Buffer] = [b"", header]
    length = 0
    for column in columns:
        if size := column.nbytes:
            # A short one is copied sooner than a view of it is made.
            buffers.append(column.data.cast("B") if size > _SHORT_COLUMN else column.tobytes())
            if padding := -size % _ALIGNED:
                buffers.append(_PADDING[:padding])
            length += size + padding
    buffers[0] = PREFIX.pack(_MAGIC, len(header), length)
    return buffers


def lengths_of(prefix: bytes | bytearray | memoryview, most: int = MAX_BODY) -> tuple[int, int]:
    """The lengths of header and body, which must not be more than `most`."""
    magic, header, body = PREFIX.unpack(prefix)
    if magic != _MAGIC:
        raise FrameDamaged(f"the link brought {magic!r}, which no frame begins with", remedy=_SAME_PROGRAM)
    if header > min(MAX_HEADER, most) or body > most:
        raise FrameDamaged(f"a frame claims a header of {header:,} bytes and a body of {body:,}")
    return header, body


def encode_joined(message: Message) -> bytes:
    """The frame in one piece, for a message that is short."""
    return b"".join(encode(message))


def decode_frame(frame: bytearray | memoryview) -> Message:
    """A message that is here as a whole."""
    view = memoryview(frame)
    header, body = lengths_of(view[: PREFIX.size])
    behind = PREFIX.size + header
    if len(view) != behind + body:
        raise FrameDamaged(f"a frame of {behind + body} bytes came as {len(view)}")
    return decode(view[PREFIX.size : behind], view[behind:])


def decode(header: bytes | bytearray | memoryview, body: bytes | bytearray | memoryview) -> Message:
    """What was encoded, with columns that are views of the body."""
    try:
        told = orjson.loads(header)
    except orjson.JSONDecodeError as error:
        raise FrameDamaged(f"a frame's header is no JSON: {error}") from error
    if not isinstance(told, dict) or told.get("version") != VERSION:
        version = told.get("version") if isinstance(told, dict) else None
        raise FrameDamaged(f"a frame of version {version!r} came; this program has {VERSION}", remedy=_SAME_PROGRAM)
    kind, fields, columns = told.get("kind"), told.get("fields"), told.get("columns")
    if not isinstance(kind, str) or not isinstance(fields, dict) or not isinstance(columns, list):
        raise FrameDamaged("a frame's header lacks kind, fields or columns")
    return Message(kind, fields, _columns(columns, memoryview(body)))


def _columns(told: list[Any], body: memoryview) -> list[Column]:
    found: list[Column] = []
    at = 0
    for one in told:
        kind, length = one if isinstance(one, list) and len(one) == 2 else ("", None)
        if kind not in _TYPES or type(length) is not int or length < 0:
            raise FrameDamaged(f"a frame has a column {one!r}")
        size = length * _TYPES[kind].itemsize
        end = at + size + -size % _ALIGNED
        if end > len(body):
            raise FrameDamaged(f"a frame's columns reach to byte {end:,} of a body of {len(body):,}")
        found.append(np.frombuffer(body, dtype=_TYPES[kind], count=length, offset=at))
        at = end
    if at != len(body):
        raise FrameDamaged(f"a frame's columns end at byte {at:,} of a body of {len(body):,}")
    return found


def _as_sent(column: Column) -> Column:
    # Most are as they are sent: to look is quicker than to ask for it.
    if column.dtype in _NAMES and column.flags.c_contiguous:
        return column
    return np.ascontiguousarray(column, dtype=_little_endian(column))


def _little_endian(column: Column) -> "np.dtype[Any]":
    name = column.dtype.newbyteorder("<").str
    if name not in _TYPES:
        raise ValueError(f"a column of {column.dtype} does not go into a frame")
    return _TYPES[name]


_SAME_PROGRAM = "Front and shards have to be of one version: restart the node"
