"""Encodes index buckets as rows of bytes, and decodes them.

A bucket is stored as rows of at most 1 MB, each of which can be read on its own: a checksum, a kind, a number of items,
and sections with their lengths. Rows of *records* have keys (part ids, starts, ends, key hashes, part keys); rows of
*active* have part ids with their maximum sample times. Numbers are compressed with pcodec, part keys with zstd, hashes
not at all. The first row has the bucket's number and the number of both, so an empty bucket has a row too. The manifest
has the number of rows and one checksum over all of them.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import cramjam
import numpy as np
import numpy.typing as npt
from pcodec import ChunkConfig, standalone

from strandline.arrays import I64s, U32s, run_lengths
from strandline.digest import digest
from strandline.errors import Fatal
from strandline.index.documents import PartKeyBatch
from strandline.index.time_bucket import FrozenBucket

MAX_ROW_BYTES = 1_000_000
# The limits of a row before compression; a row that is too large afterwards is split.
RECORDS_PER_ROW, KEY_BYTES_PER_ROW, ACTIVE_PER_ROW = 32_768, 6_000_000, 131_072
KEYS_PER_FETCH = 65_536

FetchKeys = Callable[[U32s], PartKeyBatch]

VERSION = 1
_CHECKSUM = struct.Struct("<Q")
_HEADER = struct.Struct("<BBIB")
_LENGTH = struct.Struct("<I")
_TOTALS = struct.Struct("<qqq")
_NUMBERS = ChunkConfig()


class BucketDamaged(Fatal):
    """A stored index bucket differs from what was written: a row is missing, altered or of another bucket."""


class RowKind(IntEnum):
    """The content of a row."""

    TOTALS = 0
    RECORDS = 1
    ACTIVE = 2


@dataclass(frozen=True, slots=True)
class EncodedBucket:
    """A bucket's rows, and the checksum over them that the manifest stores with their number."""

    rows: tuple[bytes, ...]
    checksum: bytes


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """Some of a bucket's records: the keys, and the start and end of each."""

    keys: PartKeyBatch
    start: I64s
    end: I64s

    def part(self, first: int, stop: int) -> "StoredRecords":
        """Return the records `[first, stop)`."""
        return StoredRecords(self.keys.part(first, stop), self.start[first:stop], self.end[first:stop])


@dataclass(frozen=True, slots=True)
class StoredBucket:
    """A decoded bucket: its records, one row at a time, and the active part ids with their maximum sample times."""

    bucket: int
    records: tuple[StoredRecords, ...]
    active_ids: U32s
    last: I64s


@dataclass(frozen=True, slots=True)
class Salvaged:
    """The readable rest of a damaged bucket: decoded, and encoded for storing it again. `lost_records` is the number of
    missing records, None if the row that has their number is missing.
    """

    bucket: StoredBucket
    encoded: EncodedBucket
    lost_records: int | None


def encode_bucket(frozen: FrozenBucket, fetch: FetchKeys) -> EncodedBucket:
    """Encode a frozen bucket. `fetch` returns the part keys of some of its records, in any order. It is called with a
    bounded number of ids, so a bucket with every key of a shard needs no more memory than a small one.
    """
    totals = _TOTALS.pack(frozen.bucket, len(frozen.part_ids), len(frozen.active_ids))
    rows = [_row(RowKind.TOTALS, 0, [totals])]
    for first in range(0, len(frozen.part_ids), KEYS_PER_FETCH):
        rows += _record_rows(frozen, first, first + KEYS_PER_FETCH, fetch)
    for first in range(0, len(frozen.active_ids), ACTIVE_PER_ROW):
        part = slice(first, first + ACTIVE_PER_ROW)
        ids, last = frozen.active_ids[part], frozen.last[part]
        rows.append(_row(RowKind.ACTIVE, len(ids), [_pack(ids), _pack(last)]))
    return EncodedBucket(tuple(rows), checksum_of(rows))


def checksum_of(rows: Sequence[bytes]) -> bytes:
    """Return the checksum over all rows of a bucket, in order."""
    return digest(b"".join(_CHECKSUM.pack(_checksum(row)) for row in rows)).to_bytes(16, "little")


def decode_bucket(bucket: int, rows: Sequence[bytes], count: int, checksum: bytes) -> StoredBucket:
    """Decode a bucket's rows. Raise `BucketDamaged`, with the row's number, unless they are exactly those that were
    written.
    """
    if len(rows) != count:
        raise BucketDamaged(f"index bucket {bucket} has {len(rows)} rows, but {count} were written")
    opened = [_open(bucket, number, row) for number, row in enumerate(rows)]
    if checksum_of(rows) != checksum:
        raise BucketDamaged(
            f"the rows of index bucket {bucket} are intact, but not those that its manifest row references"
        )
    kind, _, sections = opened[0]
    if kind != RowKind.TOTALS:
        raise BucketDamaged(f"index bucket {bucket} does not begin with its totals")
    named, n_records, n_active = _TOTALS.unpack(sections[0])
    records = tuple(_records(items, content) for kind, items, content in opened if kind == RowKind.RECORDS)
    active = [content for kind, _, content in opened if kind == RowKind.ACTIVE]
    active_ids = _concatenate([_unpack(ids, np.uint32) for ids, _ in active], np.uint32)
    last = _concatenate([_unpack(times, np.int64) for _, times in active], np.int64)
    found = (sum(len(one.keys) for one in records), len(active_ids))
    if named != bucket or found != (n_records, n_active):
        raise BucketDamaged(
            f"the rows of index bucket {bucket} don't match their totals: bucket {named}, {n_records} records, "
            f"{n_active} active"
        )
    return StoredBucket(bucket, records, active_ids, last)


def salvage_bucket(bucket: int, rows: Sequence[bytes]) -> Salvaged:
    """Decode what is readable of a damaged bucket: each intact row describes its own keys."""
    records: list[tuple[bytes, StoredRecords]] = []
    active: list[tuple[bytes, U32s, I64s]] = []
    written: int | None = None
    for number, row in enumerate(rows):
        try:
            kind, items, sections = _open(bucket, number, row)
        except BucketDamaged:
            continue
        if kind == RowKind.TOTALS:
            _, written, _ = _TOTALS.unpack(sections[0])
        elif kind == RowKind.RECORDS:
            records.append((row, _records(items, sections)))
        else:
            active.append((row, _unpack(sections[0], np.uint32), _unpack(sections[1], np.int64)))
    found = sum(len(one.keys) for _, one in records)
    active_ids = _concatenate([ids for _, ids, _ in active], np.uint32)
    totals = _row(RowKind.TOTALS, 0, [_TOTALS.pack(bucket, found, len(active_ids))])
    sound = (totals, *(row for row, _ in records), *(row for row, _, _ in active))
    last = _concatenate([times for _, _, times in active], np.int64)
    return Salvaged(
        StoredBucket(bucket, tuple(one for _, one in records), active_ids, last),
        EncodedBucket(sound, checksum_of(sound)),
        None if written is None else written - found,
    )


def _record_rows(frozen: FrozenBucket, first: int, stop: int, fetch: FetchKeys) -> Iterator[bytes]:
    part_ids = frozen.part_ids[first:stop]
    keys = fetch(part_ids)
    order = np.argsort(keys.part_ids)
    if not np.array_equal(keys.part_ids[order], part_ids):
        raise ValueError(f"the {len(keys)} part keys that were fetched are not those of the {len(part_ids)} records")
    records = StoredRecords(keys.take(order), frozen.start[first:stop], frozen.end[first:stop])
    offsets, row = records.keys.offsets, 0
    while row < len(part_ids):
        fitting = int(np.searchsorted(offsets, int(offsets[row]) + KEY_BYTES_PER_ROW, side="right")) - 1
        next_row = min(max(fitting, row + 1), row + RECORDS_PER_ROW, len(part_ids))
        yield from _split(records.part(row, next_row))
        row = next_row


def _split(records: StoredRecords) -> Iterator[bytes]:
    """Encode as one row, or as several if that is too large."""
    count, keys = len(records.keys), records.keys
    row = _row(
        RowKind.RECORDS,
        count,
        [
            _pack(keys.part_ids),
            _pack(records.start),
            _pack(records.end),
            keys.key_hashes.tobytes(),
            _pack(run_lengths(keys.offsets).astype(np.uint32)),
            bytes(cramjam.zstd.compress(keys.keys[keys.offsets[0] : keys.offsets[-1]].tobytes(), level=3)),
        ],
    )
    if len(row) <= MAX_ROW_BYTES or count == 1:
        yield row
    else:
        yield from _split(records.part(0, count // 2))
        yield from _split(records.part(count // 2, count))


def _records(count: int, sections: list[bytes]) -> StoredRecords:
    ids, start, end, hashes, lengths, keys = sections
    offsets = np.zeros(count + 1, dtype=np.int64)
    _unpack(lengths, np.uint32).cumsum(out=offsets[1:])
    batch = PartKeyBatch(
        _unpack(ids, np.uint32),
        np.frombuffer(hashes, dtype="<u8").reshape(count, 2),
        offsets,
        np.frombuffer(bytes(cramjam.zstd.decompress(keys, output_len=int(offsets[-1]))), dtype=np.uint8),
    )
    return StoredRecords(batch, _unpack(start, np.int64), _unpack(end, np.int64))


def _row(kind: RowKind, count: int, sections: list[bytes]) -> bytes:
    lengths = b"".join(_LENGTH.pack(len(section)) for section in sections)
    body = _HEADER.pack(VERSION, kind, count, len(sections)) + lengths + b"".join(sections)
    return _CHECKSUM.pack(_low_word(body)) + body


def _open(bucket: int, number: int, row: bytes) -> tuple[int, int, list[bytes]]:
    """Return a row's kind, number of items and sections, after checking its checksum."""
    body = row[_CHECKSUM.size :]
    if len(body) < _HEADER.size or _checksum(row) != _low_word(body):
        raise BucketDamaged(f"row {number} of index bucket {bucket} is damaged")
    version, kind, count, n_sections = _HEADER.unpack_from(body)
    if version != VERSION:
        raise BucketDamaged(
            f"row {number} of index bucket {bucket} has version {version}, and this program reads {VERSION}",
            remedy="Use the version of Strandline that wrote it, or a later one",
        )
    at = _HEADER.size + n_sections * _LENGTH.size
    sections = []
    for (length,) in _LENGTH.iter_unpack(body[_HEADER.size : at]):
        sections.append(body[at : at + length])
        at += length
    return kind, count, sections


def _checksum(row: bytes) -> int:
    return int(_CHECKSUM.unpack_from(row)[0]) if len(row) >= _CHECKSUM.size else -1


def _low_word(data: bytes) -> int:
    return digest(data) & 0xFFFF_FFFF_FFFF_FFFF


def _pack(numbers: npt.NDArray[Any]) -> bytes:
    # pcodec can't encode an empty array.
    return bytes(standalone.simple_compress(numbers, _NUMBERS)) if len(numbers) else b""


def _unpack(packed: bytes, kind: type[Any]) -> npt.NDArray[Any]:
    return np.asarray(standalone.simple_decompress(packed), dtype=kind) if packed else np.empty(0, dtype=kind)


def _concatenate(parts: list[npt.NDArray[Any]], kind: type[Any]) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype=kind)
