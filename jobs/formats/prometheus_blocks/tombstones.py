"""Reads the tombstones of a block: time intervals by series that are deleted but still in the chunks."""

import struct
from dataclasses import dataclass

import numpy as np
from pyarrow.fs import FileSystem, FileType

from strandline.arrays import I64s, U64s
from strandline.jobs.formats.byte_ranges import RangeFile
from strandline.jobs.formats.kernels.index_entries import read_tombstones
from strandline.jobs.formats.prometheus_blocks.block_info import TOMBSTONES
from strandline.jobs.formats.prometheus_blocks.errors import DamagedBlock
from strandline.kernels.crc32c import crc32c

_MAGIC = 0x0130BA30
_VERSION = 1
_HEADER_BYTES, _CHECKSUM_BYTES = 5, 4
_MIN_TOMBSTONE_BYTES = 3  # Three varints.

# The arguments of kernels: index of the first interval of each series, with a final end; earliest and latest times.
Deleted = tuple[I64s, I64s, I64s]


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Intervals with inclusive ends, sorted by the reference of the series in the index."""

    references: U64s
    earliest: I64s
    latest: I64s

    def of(self, references: I64s) -> Deleted:
        """The intervals of series, whose references must be ascending."""
        requested = references.astype(np.uint64)
        kept = np.isin(self.references, requested)
        firsts = np.searchsorted(self.references[kept], requested)
        return np.append(firsts, np.count_nonzero(kept)).astype(np.int64), self.earliest[kept], self.latest[kept]


def load_tombstones(fs: FileSystem, block_path: str) -> Tombstones:
    """Read the tombstones of a block, if it has any. Damage is an error, because deleted samples would come back."""
    path = f"{block_path}/{TOMBSTONES}"
    if fs.get_file_info(path).type == FileType.NotFound:
        return Tombstones(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    with RangeFile(fs, path) as file:
        size = file.size
        data = file.read(0, size)
    if size < _HEADER_BYTES + _CHECKSUM_BYTES:
        raise DamagedBlock(path, size, "the file ends before its checksum")
    magic, version = struct.unpack_from(">IB", data.data)
    if magic != _MAGIC:
        raise DamagedBlock(path, 0, f"the file begins with {magic:#010x}, not with {_MAGIC:#010x} as tombstones do")
    if version != _VERSION:
        raise DamagedBlock(path, 4, f"version {version} of the tombstones format is not {_VERSION}")
    (expected,) = struct.unpack_from(">I", data.data, size - _CHECKSUM_BYTES)
    # The checksum covers neither the magic number nor the version.
    found = crc32c(data.ctypes.data + _HEADER_BYTES, size - _HEADER_BYTES - _CHECKSUM_BYTES)
    if found != expected:
        raise DamagedBlock(
            path, _HEADER_BYTES, f"the tombstones have checksum {found:#010x}, but {expected:#010x} is stored"
        )
    entries = data[_HEADER_BYTES:]
    length = size - _HEADER_BYTES - _CHECKSUM_BYTES
    references = np.zeros(length // _MIN_TOMBSTONE_BYTES + 1, dtype=np.uint64)
    earliest, latest = np.zeros(len(references), dtype=np.int64), np.zeros(len(references), dtype=np.int64)
    count, is_valid = read_tombstones(entries, length, references, earliest, latest)
    if not is_valid:
        raise DamagedBlock(path, _HEADER_BYTES, "the tombstones are malformed")
    order = np.argsort(references[:count], kind="stable")
    return Tombstones(references[order], earliest[order], latest[order])
