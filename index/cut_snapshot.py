"""What a shard's index knows right after a bucket's cut, as one value, and that value as bytes.

Documents are no part of it: Lucene keeps those. Nor is it said when stored buckets expire, which the manifest knows.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from strandline.errors import Fatal
from strandline.index.part_columns import PartRows

# The last byte is the version.
_MAGIC: Final = b"cut-key\x02"
_HEADER: Final = struct.Struct("<8sqqqqq")
_BITMAP: Final = struct.Struct("<qq")
# Wide columns first, so that each of them lies where its numbers may be read in place.
_COLUMNS: Final[tuple[tuple[str, str], ...]] = (
    ("start", "<i8"),
    ("last", "<i8"),
    ("end", "<i8"),
    ("metric", "<u8"),
    ("key_low", "<u8"),
    ("key_high", "<u8"),
    ("newest", "<i4"),
    ("active_in", "<i4"),
    ("part_id", "<u4"),
)


class UnknownSnapshot(Fatal):
    """The bytes are not those of a snapshot that this version of the program reads."""


@dataclass(frozen=True, slots=True)
class CutSnapshot:
    """The keys that were present once a bucket had been cut, and who was active in the buckets that are kept.

    `retention` is the one that keys were purged and buckets dropped by. Nothing in a snapshot changes: it may be
    written from another thread. The keys' numbers within a bucket are no part of it.
    """

    bucket: int
    next_part_id: int
    retention: int
    keys: PartRows
    active: Mapping[int, BitMap]


def encode_snapshot(snapshot: CutSnapshot) -> bytes:
    """A snapshot as bytes: numbers as they lie in memory, bitmaps in the portable format of roaring bitmaps."""
    header = _HEADER.pack(
        _MAGIC,
        snapshot.bucket,
        snapshot.next_part_id,
        snapshot.retention,
        len(snapshot.keys),
        len(snapshot.active),
    )
    parts: list[Any] = [header]
    parts += [np.ascontiguousarray(getattr(snapshot.keys, name), dtype=kind).data for name, kind in _COLUMNS]
    for bucket, active in snapshot.active.items():
        serialised = active.serialize()
        parts += [_BITMAP.pack(bucket, len(serialised)), serialised]
    return b"".join(parts)


def decode_snapshot(data: npt.NDArray[np.uint8]) -> CutSnapshot:
    """Read a snapshot, whose columns are views of the bytes.

    Whether these are the bytes that were written is for the caller to know, by their checksum.
    """
    begin = data[: len(_MAGIC)].tobytes()
    if begin != _MAGIC:
        raise UnknownSnapshot(f"{begin!r} does not begin a snapshot that this version of Strandline reads")
    _, bucket, next_part_id, retention, n_keys, n_active = _HEADER.unpack_from(data.data)
    at = _HEADER.size
    columns: dict[str, npt.NDArray[Any]] = {}
    for name, kind in _COLUMNS:
        columns[name] = np.frombuffer(data, dtype=kind, count=n_keys, offset=at)
        at += columns[name].nbytes
    active = {}
    for _ in range(n_active):
        active_bucket, length = _BITMAP.unpack_from(data.data, at)
        at += _BITMAP.size
        active[active_bucket] = BitMap.deserialize(data[at : at + length].tobytes())
        at += length
    keys = PartRows(number=np.zeros(n_keys, dtype=np.uint32), **columns)
    return CutSnapshot(bucket, next_part_id, retention, keys, active)
