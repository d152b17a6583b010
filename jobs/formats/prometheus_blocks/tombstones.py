"""What was deleted of a block but is still in its chunks: intervals of time by series."""

import struct
from dataclasses import dataclass

import numpy as np
from pyarrow.fs import FileSystem, FileType

from strandline.arrays import I64s, U64s
from strandline.jobs.formats.byte_ranges import RangeFile
from strandline.jobs.formats.kernels.index_entries import read_tombstones
from strandline.jobs.formats.prometheus_blocks.errors import DamagedBlock
from strandline.jobs.formats.prometheus_blocks.finding import TOMBSTONES
from strandline.kernels.crc32c import crc32c

_MAGIC = 0x0130BA30
_VERSION = 1
_HEADER, _CHECKSUM = 5, 4
_MIN_TOMBSTONE_BYTES = 3  # Three varints.

# As kernels take them: where the intervals of each series begin and those of the last end; earliest and latest times.
Deleted = tuple[I64s, I64s, I64s]


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Intervals, both ends included, sorted by the series' reference in the index."""

    references: U64s
    earliest: I64s
    latest: I64s

    def of(self, references: I64s) -> Deleted:
        """The intervals of series whose references ascend."""
        wanted = references.astype(np.uint64)
        kept = np.isin(self.references, wanted)
        firsts = np.searchsorted(self.references[kept], wanted)
        return np.append(firsts, np.count_nonzero(kept)).astype(np.int64), self.earliest[kept], self.latest[kept]


def load_tombstones(fs: FileSystem, block_path: str) -> Tombstones:
    """Those of a block, none if it has no such file. Damaged ones are an error: deleted samples would come back."""
    path = f"{block_path}/{TOMBSTONES}"
    if fs.get_file_info(path).type == FileType.NotFound:
        return Tombstones(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    with RangeFile(fs, path) as file:
        size = file.size
        data = file.read(0, size)
    if size < _HEADER + _CHECKSUM:
        raise DamagedBlock(path, size, "the file ends before its checksum")
    magic, version = struct.unpack_from(">IB", data.data)
    if magic != _MAGIC:
        raise DamagedBlock(path, 0, f"the file begins with {magic:#010x}, not with {_MAGIC:#010x} as tombstones do")
    if version != _VERSION:
        raise DamagedBlock(path, 4, f"version {version} of the tombstones format is not {_VERSION}")
    (expected,) = struct.unpack_from(">I", data.data, size - _CHECKSUM)
    # The checksum covers neither the magic number nor the version.
    found = crc32c(data.ctypes.data + _HEADER, size - _HEADER - _CHECKSUM)
    if found != expected:
        raise DamagedBlock(path, _HEADER, f"the tombstones have checksum {found:#010x}, and {expected:#010x} is stored")
    entries = data[_HEADER:]
    length = size - _HEADER - _CHECKSUM
    references = np.zeros(length // _MIN_TOMBSTONE_BYTES + 1, dtype=np.uint64)
    earliest, latest = np.zeros(len(references), dtype=np.int64), np.zeros(len(references), dtype=np.int64)
    count, sound = read_tombstones(entries, length, references, earliest, latest)
    if not sound:
        raise DamagedBlock(path, _HEADER, "the tombstones are malformed")
    order = np.argsort(references[:count], kind="stable")
    return Tombstones(references[order], earliest[order], latest[order])
