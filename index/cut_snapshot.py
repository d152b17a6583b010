"""The state of a shard's index right after a bucket's cut, as one value, and its encoding.

It does not include documents, which Lucene stores, or the expiry of stored buckets, which the manifest has.
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
# Wide columns first, so that each is aligned and can be read in place.
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
    """The bytes are not a snapshot that this version can read."""


@dataclass(frozen=True, slots=True)
class CutSnapshot:
    """The keys that were present after a bucket's cut, and the active part ids of the buckets that are kept.

    `retention` is the one by which keys were purged and buckets dropped. A snapshot is immutable, so another thread may
    write it. The keys' numbers within a bucket are not included.
    """

    bucket: int
    next_part_id: int
    retention: int
    keys: PartRows
    active: Mapping[int, BitMap]


def encode_snapshot(snapshot: CutSnapshot) -> bytes:
    """Encode a snapshot: numbers as in memory, bitmaps in the portable format of roaring bitmaps."""
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
    """Decode a snapshot, whose columns are views of the bytes.

    The caller must have verified the bytes by their checksum.
    """
    begin = data[: len(_MAGIC)].tobytes()
    if begin != _MAGIC:
        raise UnknownSnapshot(f"the snapshot begins with {begin!r}, which this version of Strandline can't read")
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
