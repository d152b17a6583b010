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

from strandline.arrays import I64s, U32s, U64s
from strandline.errors import Fatal
from strandline.index.key_table import KeyTable
from strandline.index.part_columns import PartColumns

# The last byte is the version.
_MAGIC: Final = b"cut-key\x01"
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
    ("part_ids", "<u4"),
)


class UnknownSnapshot(Fatal):
    """The bytes are not those of a snapshot that this version of the program reads."""


@dataclass(frozen=True, slots=True)
class CutSnapshot:
    """The keys that were present once a bucket had been cut, and who was active in the buckets that are kept.

    The columns are those of `PartColumns`, with a row for each present key, in rising order of `part_ids`. `retention`
    is the one that keys were purged and buckets dropped by. Nothing in a snapshot changes: it may be written from
    another thread.
    """

    bucket: int
    next_part_id: int
    retention: int
    part_ids: U32s
    start: I64s
    last: I64s
    end: I64s
    newest: npt.NDArray[np.int32]
    metric: U64s
    key_low: U64s
    key_high: U64s
    active: Mapping[int, BitMap]

    @classmethod
    def of(
        cls, columns: PartColumns, *, bucket: int, next_part_id: int, retention: int, active: Mapping[int, BitMap]
    ) -> "CutSnapshot":
        """Copy what is present out of columns that go on changing. The bitmaps must not change any more."""
        ids = np.flatnonzero(columns.present()).astype(np.uint32)
        return cls(
            bucket=bucket,
            next_part_id=next_part_id,
            retention=retention,
            part_ids=ids,
            start=columns.start[ids],
            last=columns.last[ids],
            end=columns.end[ids],
            newest=columns.newest[ids],
            metric=columns.metric[ids],
            key_low=columns.key_low[ids],
            key_high=columns.key_high[ids],
            active=active,
        )

    def columns(self) -> PartColumns:
        """Columns with these keys, for one writer to go on with."""
        columns = PartColumns()
        ids = self.part_ids
        columns.begin(ids, self.key_low, self.key_high, self.metric)
        columns.start[ids] = self.start
        columns.last[ids] = self.last
        columns.end[ids] = self.end
        columns.newest[ids] = self.newest
        return columns

    def table(self) -> KeyTable:
        """A key table with these keys."""
        table = KeyTable(len(self.part_ids))
        table.insert(self.key_low, self.key_high, self.part_ids)
        return table


def encode_snapshot(snapshot: CutSnapshot) -> bytes:
    """A snapshot as bytes: numbers as they lie in memory, bitmaps in the portable format of roaring bitmaps."""
    header = _HEADER.pack(
        _MAGIC,
        snapshot.bucket,
        snapshot.next_part_id,
        snapshot.retention,
        len(snapshot.part_ids),
        len(snapshot.active),
    )
    parts: list[Any] = [header]
    parts += [np.ascontiguousarray(getattr(snapshot, name), dtype=kind).data for name, kind in _COLUMNS]
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
    return CutSnapshot(bucket, next_part_id, retention, active=active, **columns)
