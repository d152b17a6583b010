"""Look-ups by the values of labels, packed as `strandline.index.lookup_server` takes them.

A frame of the link whose only column is the packed look-up; the JVM reads nothing else of it. All numbers are little
endian: what is asked for, as u8 (0 series, 1 label names, 2 values of a label); the first and the last time as i64, all
times if the first is greater; how many results are wanted at most as u32; the label with its length as u16; and with
their length as u32 selectors, as `strandline.index.key_lookup` packs them. The answer is a frame like those of the
link, or one of the kind `declined`: the shard's process has to be asked, since many series match or there is more to
say.
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
"""In bytes, of label and selectors: the JVM hangs up on one that is longer by far."""
_HEAD, _LENGTH = struct.Struct("<BqqI"), struct.Struct("<I")
_SERIES, _NAMES, _VALUES = range(3)
_MAX_LIMIT = 2**31 - 1
_ANY_TIME = (1, 0)


def lookups_path(socket: Path) -> Path:
    """Where a process that listens at a socket has its `LookupServer`."""
    return socket.with_suffix(".look")


def lookup_frame(request: ShardRequest) -> bytes | None:
    """The frame of a look-up that the JVM may be able to answer; None for anything else."""
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
    before, behind = _around(len(packed))
    return b"".join((before, packed, behind))


@lru_cache(4096)
def _around(length: int) -> tuple[bytes, bytes]:
    """What stands before and behind a packed look-up of so many bytes in its frame: the same for all of them."""
    prefix, header, _, *padding = encode(Message(LOOKUP, {}, (np.zeros(length, dtype=np.uint8),)))
    return b"".join((prefix, header)), b"".join(padding)
