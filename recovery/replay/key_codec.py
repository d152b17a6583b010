"""Encodes key summaries and key bytes as rows.

Hashes are stored raw; times, offsets and positions are compressed with pcodec, and key bytes with zstd. A row of
summaries and the row of keys with the same number have the same keys in the same order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cramjam
import numpy as np
import numpy.typing as npt
from pcodec import ChunkConfig, standalone

from strandline.arrays import run_lengths, run_offsets
from strandline.index.key_summary import KeySummary, PartKeyBytes
from strandline.recovery.replay.sections import ResultDamaged, pack_sections, unpack_sections

KEYS_PER_ROW, KEY_BYTES_PER_ROW, MAX_ROW_BYTES = 16_384, 4_000_000, 1_000_000
_LEVEL = 3
_HASHES, _NUMBERS = 3, 4
_CONFIG = ChunkConfig()


def encode_summary(summary: KeySummary) -> bytes:
    """Encode a row of summaries."""
    columns = summary.columns()
    hashes = [column.astype("<u8").tobytes() for column in columns[:_HASHES]]
    return pack_sections([*hashes, *map(_pack, columns[_HASHES:])])


def decode_summary(data: bytes, *, named: str) -> KeySummary:
    """The inverse of `encode_summary`. Raises `ResultDamaged`, naming the job, if the row is damaged."""
    sections = unpack_sections(data, named=named, count=_HASHES + _NUMBERS)
    if len({len(section) for section in sections[:_HASHES]}) > 1 or len(sections[0]) % 8:
        raise ResultDamaged(named, "the hash columns of a summary differ in length")
    count = len(sections[0]) // 8
    metric, high, low = (np.frombuffer(section, dtype="<u8").astype(np.uint64) for section in sections[:_HASHES])
    numbers = (_unpack(section, count, np.int64, named) for section in sections[_HASHES:])
    return KeySummary(metric, high, low, *numbers)


def encode_keys(keys: PartKeyBytes) -> bytes:
    """Encode a row of key bytes."""
    lengths = run_lengths(keys.offsets).astype(np.uint32)
    text = keys.keys[int(keys.offsets[0]) : int(keys.offsets[-1])]
    return pack_sections([_pack(lengths), bytes(cramjam.zstd.compress(text.tobytes(), level=_LEVEL))])


def decode_keys(data: bytes, count: int, *, named: str) -> PartKeyBytes:
    """The inverse of `encode_keys`, for `count` keys. Raises `ResultDamaged` like `decode_summary`."""
    lengths, text = unpack_sections(data, named=named, count=2)
    offsets = run_offsets(_unpack(lengths, count, np.uint32, named))
    try:
        keys = np.frombuffer(bytes(cramjam.zstd.decompress(text)), dtype=np.uint8)
    except cramjam.DecompressionError as error:
        raise ResultDamaged(named, f"a row of keys can't be unpacked: {error}") from error
    if len(keys) != offsets[-1]:
        raise ResultDamaged(named, f"{count} keys have {len(keys)} bytes instead of {offsets[-1]}")
    return PartKeyBytes(offsets, keys)


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A row of summaries, the row of the same keys' bytes, and the number of keys."""

    summary: bytes
    part_keys: bytes
    keys: int


def key_rows(summary: KeySummary, keys: PartKeyBytes) -> Iterator[KeyRow]:
    """Rows for some keys, in order. A row of keys is larger than 1 MB only if it has a single key."""
    row, count = encode_keys(keys), len(summary)
    if len(row) <= MAX_ROW_BYTES or count == 1:
        yield KeyRow(encode_summary(summary), row, count)
        return
    for some in (np.arange(count // 2), np.arange(count // 2, count)):
        yield from key_rows(summary.take(some), keys.take(some))


def row_end(keys: PartKeyBytes, first: int) -> int:
    """The end of the row that starts with key `first`: the position after its last key."""
    by_bytes = int(np.searchsorted(keys.offsets, int(keys.offsets[first]) + KEY_BYTES_PER_ROW, side="right")) - 1
    return min(max(by_bytes, first + 1), first + KEYS_PER_ROW, len(keys))


def _pack(numbers: npt.NDArray[Any]) -> bytes:
    # pcodec can't encode an empty array.
    return bytes(standalone.simple_compress(np.ascontiguousarray(numbers), _CONFIG)) if len(numbers) else b""


def _unpack(section: bytes, count: int, kind: type[Any], named: str) -> npt.NDArray[Any]:
    numbers = np.empty(count, dtype=kind)
    if not count and not section:
        return numbers
    try:
        progress = standalone.simple_decompress_into(section, numbers)
    except (RuntimeError, TypeError) as error:
        raise ResultDamaged(named, f"pcodec can't read a section: {error}") from error
    if progress.n_processed != count or not progress.finished:
        raise ResultDamaged(named, f"a section does not have the expected {count} numbers")
    return numbers
