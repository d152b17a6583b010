"""Reads the chunk files of a block. Chunks that are close to each other are read together."""

from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
from pyarrow.fs import FileSelector, FileSystem, FileType

from strandline.arrays import I64s
from strandline.jobs.formats.byte_ranges import Bytes, RangeFile
from strandline.jobs.formats.kernels.chunk_data import FILE_HEADER, cut_runs, locate_chunks, needed_end
from strandline.jobs.formats.prometheus_blocks.block_info import CHUNKS
from strandline.jobs.formats.prometheus_blocks.errors import DamagedBlock

_MAGIC = 0x85BD40DD
_VERSION = 1
# Chunks are read together if the gap between them is at most this long, up to a total size.
_MAX_GAP, _MAX_RUN = 64 << 10, 8 << 20
_LAST_CHUNK_BYTES = 4 << 10  # The assumed size of the last chunk of a run; a larger one needs a second read.


@dataclass(frozen=True, slots=True)
class LocatedChunks:
    """The chunks of a run: the range of each in `data`, its encoding, number of samples and `ChunkState`."""

    data: Bytes
    starts: I64s
    ends: I64s
    encodings: npt.NDArray[np.uint8]
    counts: I64s
    states: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.starts)

    def part(self, first: int, stop: int) -> "LocatedChunks":
        """A range of the chunks, as views."""
        selected = slice(first, stop)
        return LocatedChunks(
            self.data,
            self.starts[selected],
            self.ends[selected],
            self.encodings[selected],
            self.counts[selected],
            self.states[selected],
        )


def runs_of(segments: I64s, offsets: I64s) -> list[tuple[int, int]]:
    """The ranges [first, stop) of chunks that are read together."""
    firsts = np.zeros(len(offsets) + 1, dtype=np.int64)
    count = cut_runs(segments, offsets, _MAX_GAP, _MAX_RUN, firsts)
    firsts[count] = len(offsets)
    bounds = firsts[: count + 1].tolist()
    return list(pairwise(bounds))


class ChunkFiles:
    """The chunk files of a block. One is open at a time, because chunks are read in the order of files."""

    def __init__(self, fs: FileSystem, block_path: str) -> None:
        self._fs = fs
        self._folder = f"{block_path}/{CHUNKS}"
        found = fs.get_file_info(FileSelector(self._folder, allow_not_found=True))
        # File numbers in references start at 0, those in names at 1.
        self._paths: dict[int, str] = {
            int(entry.base_name) - 1: entry.path
            for entry in found
            if entry.type == FileType.File and entry.base_name.isdecimal()
        }
        self._open: tuple[int, RangeFile] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def path(self, segment: int) -> str:
        return self._paths.get(segment, f"{self._folder}/{segment + 1:06d}")

    def locate(self, segment: int, offsets: I64s) -> LocatedChunks:
        """Read and check the chunks of a run. Raises `DamagedBlock` if their file is missing."""
        file = self._file(segment)
        # A reference beyond the end of a truncated file reads nothing.
        base = min(int(offsets[0]), file.size)
        end = min(int(offsets[-1]) + _LAST_CHUNK_BYTES, file.size)
        data = file.read(base, end - base)
        needed = int(needed_end(data, base, end - base, offsets, file.size))
        if needed > end:
            data = np.concatenate((data[: end - base], file.read(end, needed - end)))
        chunks = LocatedChunks(
            data,
            starts=np.empty(len(offsets), dtype=np.int64),
            ends=np.empty(len(offsets), dtype=np.int64),
            encodings=np.empty(len(offsets), dtype=np.uint8),
            counts=np.empty(len(offsets), dtype=np.int64),
            states=np.empty(len(offsets), dtype=np.uint8),
        )
        locate_chunks(
            data,
            base,
            needed - base,
            offsets,
            chunks.starts,
            chunks.ends,
            chunks.encodings,
            chunks.counts,
            chunks.states,
        )
        return chunks

    def _file(self, segment: int) -> RangeFile:
        if self._open is not None and self._open[0] == segment:
            return self._open[1]
        self.close()
        path = self.path(segment)
        if segment not in self._paths:
            raise DamagedBlock(path, None, "the file is missing, but the index refers to it")
        file = RangeFile(self._fs, path)
        self._open = (segment, file)
        if file.size < FILE_HEADER:
            raise DamagedBlock(path, file.size, "the file ends before its first chunk")
        magic, version = file.numbers(">IB", 0)
        if magic != _MAGIC:
            raise DamagedBlock(path, 0, f"the file begins with {magic:#010x}, not with {_MAGIC:#010x} as chunks do")
        if version != _VERSION:
            raise DamagedBlock(path, 4, f"version {version} of the chunks format is not {_VERSION}")
        return file
