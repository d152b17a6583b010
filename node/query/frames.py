"""Frames: requests, answers and errors as bytes, for the link between the front and a shard's process.

A frame is a prefix with two lengths, a header in JSON, and a body. The header has the version, the kind of message, its
fields, and the type and length of each column, and is padded with blanks. The body has the columns, little endian. The
header, the body and every column begin at a multiple of eight bytes. Both ends are the same program on one machine, but
everything is checked: an invalid frame raises `FrameDamaged`, and nothing of it is used.
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
# The longest headers have the tops of a cardinality. The body has at most an answer at the limits of the settings.
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
    """Bytes on the link that are not a frame, or a frame of another version."""


@dataclass(frozen=True, slots=True)
class Message:
    """The content of a frame: its kind, fields that JSON can represent, and columns."""

    kind: str
    fields: Mapping[str, Any]
    columns: Sequence[Column] = ()


def encode(message: Message) -> list[Buffer]:
    """The frame as buffers to send in order. Long contiguous columns are not copied."""
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
            # Copying a short column is faster than making a view of it.
            buffers.append(column.data.cast("B") if size > _SHORT_COLUMN else column.tobytes())
            if padding := -size % _ALIGNED:
                buffers.append(_PADDING[:padding])
            length += size + padding
    buffers[0] = PREFIX.pack(_MAGIC, len(header), length)
    return buffers


def lengths_of(prefix: bytes | bytearray | memoryview, max_bytes: int = MAX_BODY) -> tuple[int, int]:
    """The lengths of header and body, of which each must not exceed `max_bytes`."""
    magic, header, body = PREFIX.unpack(prefix)
    if magic != _MAGIC:
        raise FrameDamaged(f"the link received {magic!r}, which is not the beginning of a frame", remedy=_SAME_PROGRAM)
    if header > min(MAX_HEADER, max_bytes) or body > max_bytes:
        raise FrameDamaged(f"a frame claims a header of {header:,} bytes and a body of {body:,}")
    return header, body


def encode_joined(message: Message) -> bytes:
    """The frame as one piece of bytes, for a short message."""
    return b"".join(encode(message))


def decode_frame(frame: bytearray | memoryview) -> Message:
    """The message of a complete frame."""
    view = memoryview(frame)
    header, body = lengths_of(view[: PREFIX.size])
    start = PREFIX.size + header
    if len(view) != start + body:
        raise FrameDamaged(f"a frame of {start + body} bytes was received as {len(view)} bytes")
    return decode(view[PREFIX.size : start], view[start:])


def decode(header: bytes | bytearray | memoryview, body: bytes | bytearray | memoryview) -> Message:
    """The message of a header and a body. Its columns are views of the body."""
    try:
        decoded = orjson.loads(header)
    except orjson.JSONDecodeError as error:
        raise FrameDamaged(f"a frame's header is not JSON: {error}") from error
    if not isinstance(decoded, dict) or decoded.get("version") != VERSION:
        version = decoded.get("version") if isinstance(decoded, dict) else None
        raise FrameDamaged(f"a frame has version {version!r}; this program has version {VERSION}", remedy=_SAME_PROGRAM)
    kind, fields, columns = decoded.get("kind"), decoded.get("fields"), decoded.get("columns")
    if not isinstance(kind, str) or not isinstance(fields, dict) or not isinstance(columns, list):
        raise FrameDamaged("a frame's header lacks kind, fields or columns")
    return Message(kind, fields, _columns(columns, memoryview(body)))


def _columns(described: list[Any], body: memoryview) -> list[Column]:
    found: list[Column] = []
    at = 0
    for one in described:
        kind, length = one if isinstance(one, list) and len(one) == 2 else ("", None)
        if kind not in _TYPES or type(length) is not int or length < 0:
            raise FrameDamaged(f"a frame has an invalid column {one!r}")
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
    # Most columns need no conversion: this check is faster than the call.
    if column.dtype in _NAMES and column.flags.c_contiguous:
        return column
    return np.ascontiguousarray(column, dtype=_little_endian(column))


def _little_endian(column: Column) -> "np.dtype[Any]":
    name = column.dtype.newbyteorder("<").str
    if name not in _TYPES:
        raise ValueError(f"a column of {column.dtype} can't be sent in a frame")
    return _TYPES[name]


_SAME_PROGRAM = "The front and the shards must have the same version: restart the node"
