"""Reads the index file of a block: table of contents, symbols, and the entries of series.

The positions of series come from the list of all postings, not from scanning the entries, so that a damaged entry does
not affect those after it.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from pyarrow.fs import FileSystem

from strandline.arrays import I64s
from strandline.jobs.formats.byte_ranges import Bytes, RangeFile
from strandline.jobs.formats.kernels.index_entries import VERSION_2, find_all_postings, find_symbols
from strandline.jobs.formats.prometheus_blocks.block_info import INDEX
from strandline.jobs.formats.prometheus_blocks.errors import DamagedBlock
from strandline.kernels.crc32c import crc32c_continued

_MAGIC = 0xBAAAD700
_HEADER_BYTES = 5
_TOC_BYTES = 6 * 8 + 4
_CHECKSUM_BYTES = 4
_ALIGNMENT = 16  # Of series entries in version 2; references count in this unit.
_READ_BYTES = 4 << 20  # The size of reads of a section that need not be in memory completely.
_POSTING_BYTES = 4
# An entry takes about 8 bytes per chunk; a longer one is damage.
MAX_ENTRY_BYTES = 64 << 20
# The limits of a piece, in bytes and in series. A `SampleBlock` ends where a piece does. With other limits, a part that
# has started would continue at another position than where it stopped.
PIECE_BYTES, PIECE_SERIES = 4 << 20, 1 << 16


@dataclass(frozen=True, slots=True)
class Contents:
    """The table of contents: the positions of sections; `end` is the position of the table itself."""

    symbols: int
    series: int
    series_end: int
    postings_table: int
    end: int


@dataclass(frozen=True, slots=True)
class Symbols:
    """The symbol table: its bytes, the offset of each symbol in them (version 2), and its position in the file."""

    table: Bytes
    length: int
    offsets: npt.NDArray[np.uint32]
    version: int
    position: int

    def for_kernels(self) -> tuple[Any, ...]:
        """The arguments of kernels. They contain addresses: this object must stay alive."""
        memory = self.table.ctypes.data
        return memory, memory + self.length, self.offsets, self.version, self.position


@dataclass(frozen=True, slots=True)
class EntryPiece:
    """The entries of consecutive series, starting with series `first`. Entry i is between `positions[i]` and
    `positions[i + 1]`, and `data` begins at `positions[0]`.
    """

    first: int
    positions: I64s
    data: Bytes

    def __len__(self) -> int:
        return len(self.positions) - 1


class IndexFile:
    """An open index with a valid table of contents."""

    def __init__(self, fs: FileSystem, block_path: str) -> None:
        self._file = RangeFile(fs, f"{block_path}/{INDEX}")
        self.path = self._file.path
        try:
            self.version = self._read_version()
            self.contents = self._read_contents()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def read_symbols(self) -> Symbols:
        """The complete symbol table, after checking it."""
        start = self.contents.symbols
        length = self._section_length(start, "the symbol table")
        if length < 4:
            raise self._damaged(start, "the symbol table has no count")
        table = self._file.read(start + 4, length + _CHECKSUM_BYTES)
        checksum = crc32c_continued(0, table.ctypes.data, length)
        self._compare(checksum, table[length : length + _CHECKSUM_BYTES], start, "the symbol table")
        (count,) = struct.unpack_from(">I", table.data)
        if count > length - 4:
            raise self._damaged(start, f"the symbol table can't hold {count} symbols in {length} bytes")
        offsets = np.zeros(count if self.version == VERSION_2 else 0, dtype=np.uint32)
        if find_symbols(table, length, offsets) != len(offsets):
            raise self._damaged(start, "the symbol table is malformed")
        return Symbols(table, length, offsets, self.version, start + 4)

    def series_count(self) -> int:
        """The number of series."""
        return self._all_postings()[1]

    def check_postings(self) -> None:
        """Check the checksums of the postings table and of the list of all series."""
        start = self.contents.postings_table
        self._check_section(start, "the postings table")
        self._check_section(self._all_postings()[0] - 8, "the list of all series")

    def entry_pieces(self, first: int, stop: int) -> Iterator[EntryPiece]:
        """The entries of a range of series, in pieces of limited size, which only depend on the range."""
        start, count = self._all_postings()
        if not 0 <= first <= stop <= count:
            raise self._damaged(start, f"series {first} to {stop} are not among the {count} series of the index")
        while first < stop:
            positions = self._positions(start, first, min(stop, first + PIECE_SERIES), count)
            fitting = int(np.searchsorted(positions, positions[0] + PIECE_BYTES, side="right")) - 1
            number = min(max(fitting, 1), len(positions) - 1)
            positions = positions[: number + 1]
            length = int(positions[-1] - positions[0])
            if length > MAX_ENTRY_BYTES:
                # The only entry in the piece: the kernel reports it as cut off.
                length = MAX_ENTRY_BYTES
                positions = np.array([positions[0], positions[0] + length])
            yield EntryPiece(first, positions, self._file.read(int(positions[0]), length))
            first += number

    def references(self, piece: EntryPiece) -> I64s:
        """The references of these series in tombstones."""
        return piece.positions[:-1] // self._unit

    @property
    def _unit(self) -> int:
        return _ALIGNMENT if self.version == VERSION_2 else 1

    def _positions(self, start: int, first: int, stop: int, count: int) -> I64s:
        """The positions of entries, and of the one after them."""
        last = min(stop + 1, count)
        raw = self._file.read(start + _POSTING_BYTES * first, _POSTING_BYTES * (last - first))
        references = raw[: _POSTING_BYTES * (last - first)].view(">u4").astype(np.int64)
        positions = references * self._unit
        if last == stop:
            positions = np.append(positions, self.contents.series_end)
        if (
            positions[0] < self.contents.series
            or positions[-1] > self.contents.series_end
            or (np.diff(positions) <= 0).any()
        ):
            raise self._damaged(
                start + _POSTING_BYTES * first,
                "the list of all series is not sorted or leaves the section of series",
            )
        return positions

    def _read_version(self) -> int:
        if self._file.size < _HEADER_BYTES + _TOC_BYTES:
            raise self._damaged(self._file.size, "the file ends before its table of contents")
        magic, version = self._file.numbers(">IB", 0)
        if magic != _MAGIC:
            raise self._damaged(0, f"the file begins with {magic:#010x}, not with {_MAGIC:#010x} as an index does")
        if version not in (1, 2):
            raise self._damaged(4, f"version {version} of the index format is neither 1 nor 2")
        return int(version)

    def _read_contents(self) -> Contents:
        end = self._file.size - _TOC_BYTES
        raw = self._file.read(end, _TOC_BYTES)
        checksum = crc32c_continued(0, raw.ctypes.data, _TOC_BYTES - _CHECKSUM_BYTES)
        self._compare(
            checksum,
            raw[_TOC_BYTES - _CHECKSUM_BYTES : _TOC_BYTES],
            end,
            "the table of contents at the end of the file",
        )
        symbols, series, *others = struct.unpack_from(">6Q", raw.data)
        postings_table = others[-1]
        for name, position in (("symbols", symbols), ("series", series), ("postings table", postings_table)):
            if not _HEADER_BYTES <= position <= end - 4:
                raise self._damaged(end, f"the table of contents has {name} at byte {position}, outside of the file")
        series_end = min(position for position in (*others, end) if position >= series and position != 0)
        return Contents(symbols, series, series_end, postings_table, end)

    def _all_postings(self) -> tuple[int, int]:
        """The list of all series: the position of its references, and their number."""
        start = self._find_all_postings()
        if not _HEADER_BYTES <= start <= self.contents.end - 12:
            raise self._damaged(
                self.contents.postings_table, f"the list of all series is at byte {start}, outside of the file"
            )
        length = self._section_length(start, "the list of all series")
        (count,) = self._file.numbers(">I", start + 4)
        if length != 4 + _POSTING_BYTES * count:
            raise self._damaged(start, f"the list of all series has {count} entries in {length} bytes")
        return start + 8, count

    def _find_all_postings(self) -> int:
        """The position of the list of all series. Its entry in the postings table is normally the first."""
        start = self.contents.postings_table
        length = self._section_length(start, "the postings table")
        if length < 4:
            raise self._damaged(start, "the postings table has no count")
        (entries,) = self._file.numbers(">I", start + 4)
        at, end = start + 8, start + 4 + length
        piece = 1 << 10
        while True:
            size = min(piece, end - at)
            position, used, entries = find_all_postings(self._file.read(at, size), size, entries)
            if position >= 0:
                return int(position)
            if position == -2 or not entries or at + size == end or (not used and size >= MAX_ENTRY_BYTES):
                raise self._damaged(at + used, "the postings table has no list of all series")
            at += used
            piece = max(_READ_BYTES, 0 if used else 4 * piece)

    def _section_length(self, start: int, name: str) -> int:
        """The length of a section without its checksum, which must end before the table of contents."""
        (length,) = self._file.numbers(">I", start)
        if start + 4 + length + _CHECKSUM_BYTES > self.contents.end:
            raise self._damaged(start, f"{name} of {length} bytes does not fit into the file")
        return int(length)

    def _check_section(self, start: int, name: str) -> None:
        at, end = start + 4, start + 4 + self._section_length(start, name)
        checksum = 0
        while at < end:
            size = min(_READ_BYTES, end - at)
            piece = self._file.read(at, size)  # In a variable, so that it stays alive while its address is in use.
            checksum = int(crc32c_continued(checksum, piece.ctypes.data, size))
            at += size
        self._compare(checksum, self._file.read(end, _CHECKSUM_BYTES)[:_CHECKSUM_BYTES], start, name)

    def _compare(self, found: int, stored: Bytes, position: int, name: str) -> None:
        (expected,) = struct.unpack(">I", stored.tobytes())
        if found != expected:
            raise self._damaged(position, f"{name} has checksum {found:#010x}, but {expected:#010x} is stored")

    def _damaged(self, position: int, reason: str) -> DamagedBlock:
        return DamagedBlock(self.path, position, reason)
