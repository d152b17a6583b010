"""Frames of lookups: requests by the values of labels, which a shard's JVM answers (`strandline.index.lookup_server`).

A lookup is a frame of the link with one column, the packed lookup; the JVM reads nothing else of it. All numbers are
little endian: the kind as u8 (0 series, 1 label names, 2 values of a label); the first and the last time as i64 (first
> last: all times); the limit of results as u32; the label with its length as u16; the selectors, as
`strandline.index.key_lookup` packs them, with their length as u32. The answer is a frame of the link, or one of the
kind `declined`: then the request must go to the shard's process, because many series match, or the JVM can't answer it.
"""

import struct
from functools import lru_cache
from pathlib import Path

import numpy as np

from strandline.index.documents import sized
from strandline.index.key_lookup import packed_selectors
from strandline.node.query.frames import Message, encode
from strandline.node.query.shard_requests import LabelNamesRequest, LabelValuesRequest, SeriesRequest, ShardRequest

LOOKUP, DECLINED = "lookup", "declined"
MAX_LOOKUP = 8 << 10
"""Bytes of label and selectors. The JVM closes the connection if a lookup is much longer."""
_HEAD, _LENGTH = struct.Struct("<BqqI"), struct.Struct("<I")
_SERIES, _NAMES, _VALUES = range(3)
_MAX_LIMIT = 2**31 - 1
_ANY_TIME = (1, 0)


def lookups_path(socket: Path) -> Path:
    """The socket of the `LookupServer` of the process that listens at `socket`."""
    return socket.with_suffix(".look")


def lookup_frame(request: ShardRequest) -> bytes | None:
    """The frame of a lookup that the JVM may be able to answer; None for other requests."""
    match request:
        case SeriesRequest():
            kind, label = _SERIES, b""
        case LabelNamesRequest():
            kind, label = _NAMES, b""
        case LabelValuesRequest():
            kind, label = _VALUES, request.label.encode()
        case _:
            return None
    selectors = packed_selectors(request.selectors)
    if selectors is None or len(label) + len(selectors) > MAX_LOOKUP:
        return None
    first, last = _ANY_TIME
    if request.within is not None:
        first, last = request.within.first, request.within.last
        if first > last:
            return None
    head, length = _HEAD.pack(kind, first, last, min(request.limit, _MAX_LIMIT)), _LENGTH.pack(len(selectors))
    packed = b"".join((head, sized(label), length, selectors))
    head_bytes, padding = _head_and_padding(len(packed))
    return b"".join((head_bytes, packed, padding))


@lru_cache(4096)
def _head_and_padding(length: int) -> tuple[bytes, bytes]:
    """What precedes and follows a packed lookup of `length` bytes in its frame."""
    prefix, header, _, *padding = encode(Message(LOOKUP, {}, (np.zeros(length, dtype=np.uint8),)))
    return b"".join((prefix, header)), b"".join(padding)
