"""A block's chunk files: chunks that lie close together are read at once."""

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
from strandline.jobs.formats.prometheus_blocks.errors import DamagedBlock
from strandline.jobs.formats.prometheus_blocks.finding import CHUNKS

_MAGIC = 0x85BD40DD
_VERSION = 1
# Chunks with less than this between them are read together, up to so many bytes at a time.
_MAX_GAP, _MAX_RUN = 64 << 10, 8 << 20
_LAST_CHUNK = 4 << 10  # How long the last chunk of a run is taken to be: longer ones cost one more read.


@dataclass(frozen=True, slots=True)
class LocatedChunks:
    """The chunks of a run: where the data of each lies in `data`, its encoding, number of samples and `ChunkState`."""

    data: Bytes
    starts: I64s
    ends: I64s
    encodings: npt.NDArray[np.uint8]
    counts: I64s
    states: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.starts)

    def part(self, first: int, behind: int) -> "LocatedChunks":
        """Some of them, as views."""
        chosen = slice(first, behind)
        return LocatedChunks(
            self.data,
            self.starts[chosen],
            self.ends[chosen],
            self.encodings[chosen],
            self.counts[chosen],
            self.states[chosen],
        )


def runs_of(segments: I64s, offsets: I64s) -> list[tuple[int, int]]:
    """Chunks [first, behind) that are read at once."""
    firsts = np.zeros(len(offsets) + 1, dtype=np.int64)
    count = cut_runs(segments, offsets, _MAX_GAP, _MAX_RUN, firsts)
    firsts[count] = len(offsets)
    bounds = firsts[: count + 1].tolist()
    return list(pairwise(bounds))


class ChunkFiles:
    """The chunk files of a block. One is open at a time: chunks come in the order of the files."""

    def __init__(self, fs: FileSystem, block_path: str) -> None:
        self._fs = fs
        self._folder = f"{block_path}/{CHUNKS}"
        found = fs.get_file_info(FileSelector(self._folder, allow_not_found=True))
        # The number that a reference holds counts from 0, the names from 1.
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
        """Read and check the chunks of a run. Raises `DamagedBlock` if there is no such file."""
        file = self._file(segment)
        # A reference behind the end of a truncated file reads nothing.
        base = min(int(offsets[0]), file.size)
        end = min(int(offsets[-1]) + _LAST_CHUNK, file.size)
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
            raise DamagedBlock(path, None, "the file is missing, and the index refers to it")
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
