"""Byte strings in sections with a checksum: the format of every row of a result, and of every block."""

import struct
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from strandline.digest import digest
from strandline.errors import Fatal

VERSION = 1
_CHECKSUM = struct.Struct("<Q")
_HEADER = struct.Struct("<BI")
_OVERHEAD = _CHECKSUM.size + _HEADER.size


class ResultDamaged(Fatal):
    """What is stored of a job's result is not what was written. The job has to be done again."""

    def __init__(self, named: str, why: str) -> None:
        super().__init__(
            f"the result of {named} is damaged: {why}",
            remedy="Drop the plan. The shard then makes a new one, which does the job again",
        )


def pack_sections(sections: Sequence[bytes]) -> bytes:
    """Some byte strings as one."""
    lengths = struct.pack(f"<{len(sections)}I", *map(len, sections))
    body = b"".join([_HEADER.pack(VERSION, len(sections)), lengths, *sections])
    return _CHECKSUM.pack(_low_word(body)) + body


def unpack_sections(data: bytes, *, named: str, count: int | None = None) -> list[bytes]:
    """The byte strings. Raises `ResultDamaged` unless they are what was packed, and `count` of them."""
    if len(data) < _OVERHEAD:
        raise ResultDamaged(named, f"{len(data)} bytes are too short")
    if _CHECKSUM.unpack_from(data)[0] != _low_word(data[_CHECKSUM.size :]):
        raise ResultDamaged(named, "wrong checksum")
    version, sections = _HEADER.unpack_from(data, _CHECKSUM.size)
    if version != VERSION:
        raise ResultDamaged(named, f"it has version {version}, but this program reads {VERSION}")
    if count is not None and sections != count:
        raise ResultDamaged(named, f"it has {sections} sections instead of {count}")
    first = _OVERHEAD + 4 * sections
    if first > len(data):
        raise ResultDamaged(named, f"{len(data)} bytes are too short for {sections} sections")
    ends = first + np.cumsum([0, *struct.unpack_from(f"<{sections}I", data, _OVERHEAD)])
    if ends[-1] != len(data):
        raise ResultDamaged(named, f"its sections end at byte {ends[-1]} of {len(data)}")
    return [data[start:end] for start, end in pairwise(ends.tolist())]


def _low_word(data: bytes) -> int:
    return digest(data) & 0xFFFF_FFFF_FFFF_FFFF
