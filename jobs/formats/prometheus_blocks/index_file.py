"""A block's index file: its table of contents, its symbols, and where each series' entry lies.

The positions of series come from the list of all postings, and not from walking from entry to entry: so one damaged
entry doesn't hide those behind it.
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
from strandline.jobs.formats.prometheus_blocks.errors import DamagedBlock
from strandline.jobs.formats.prometheus_blocks.finding import INDEX
from strandline.kernels.crc32c import crc32c_continued

_MAGIC = 0xBAAAD700
_HEADER = 5
_TOC = 6 * 8 + 4
_CHECKSUM = 4
_ALIGNMENT = 16  # Of series entries in version 2: references count in such units.
_PIECE = 4 << 20  # How much is read at a time of a section that need not be in memory as a whole.
_POSTING = 4
# An entry of a series takes about 8 bytes a chunk; a gap longer than this is damage.
MAX_ENTRY_BYTES = 64 << 20
# Entries of series that are read at a time: so many bytes of them, and so many. A block of samples ends where a piece
# does: with other numbers, a part that was begun would go on at another place than where it stopped.
PIECE_BYTES, PIECE_SERIES = 4 << 20, 1 << 16


@dataclass(frozen=True, slots=True)
class Contents:
    """Where the sections begin, as the table of contents at the end of the file has it; `end` is where it begins."""

    symbols: int
    series: int
    series_end: int
    postings_table: int
    end: int


@dataclass(frozen=True, slots=True)
class Symbols:
    """The symbol table: its bytes, where each symbol lies in them (version 2), and its position in the file."""

    table: Bytes
    length: int
    places: npt.NDArray[np.uint32]
    version: int
    position: int

    def for_kernels(self) -> tuple[Any, ...]:
        """As kernels take it. It holds addresses: keep this object alive."""
        memory = self.table.ctypes.data
        return memory, memory + self.length, self.places, self.version, self.position


@dataclass(frozen=True, slots=True)
class EntryPiece:
    """Entries of consecutive series from number `first` on. Entry i lies from `positions[i]` to `positions[i + 1]` at
    most, and `data` from `positions[0]` on.
    """

    first: int
    positions: I64s
    data: Bytes

    def __len__(self) -> int:
        return len(self.positions) - 1


class IndexFile:
    """An index that was opened and whose table of contents is sound."""

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
        """The whole symbol table, checked."""
        start = self.contents.symbols
        length = self._section_length(start, "the symbol table")
        if length < 4:
            raise self._damaged(start, "the symbol table has no count")
        table = self._file.read(start + 4, length + _CHECKSUM)
        checksum = crc32c_continued(0, table.ctypes.data, length)
        self._compare(checksum, table[length : length + _CHECKSUM], start, "the symbol table")
        (count,) = struct.unpack_from(">I", table.data)
        if count > length - 4:
            raise self._damaged(start, f"the symbol table can't hold {count} symbols in {length} bytes")
        places = np.zeros(count if self.version == VERSION_2 else 0, dtype=np.uint32)
        if find_symbols(table, length, places) != len(places):
            raise self._damaged(start, "the symbol table is malformed")
        return Symbols(table, length, places, self.version, start + 4)

    def series_count(self) -> int:
        """How many series there are."""
        return self._all_postings()[1]

    def check_postings(self) -> None:
        """Compare the checksums of the postings table and of the list of all series."""
        start = self.contents.postings_table
        self._check_section(start, "the postings table")
        self._check_section(self._all_postings()[0] - 8, "the list of all series")

    def entry_pieces(self, first: int, behind: int) -> Iterator[EntryPiece]:
        """The entries of series by number, in pieces of bounded size: the same ones for the same range."""
        start, count = self._all_postings()
        if not 0 <= first <= behind <= count:
            raise self._damaged(start, f"series {first} to {behind} are not among the {count} series of the index")
        while first < behind:
            positions = self._positions(start, first, min(behind, first + PIECE_SERIES), count)
            fitting = int(np.searchsorted(positions, positions[0] + PIECE_BYTES, side="right")) - 1
            number = min(max(fitting, 1), len(positions) - 1)
            positions = positions[: number + 1]
            length = int(positions[-1] - positions[0])
            if length > MAX_ENTRY_BYTES:
                # Of the only entry in it: the kernel reports it as cut off.
                length = MAX_ENTRY_BYTES
                positions = np.array([positions[0], positions[0] + length])
            yield EntryPiece(first, positions, self._file.read(int(positions[0]), length))
            first += number

    def references(self, piece: EntryPiece) -> I64s:
        """How tombstones name these series."""
        return piece.positions[:-1] // self._unit

    @property
    def _unit(self) -> int:
        return _ALIGNMENT if self.version == VERSION_2 else 1

    def _positions(self, start: int, first: int, behind: int, count: int) -> I64s:
        """Where entries lie, and where the one behind them does."""
        last = min(behind + 1, count)
        raw = self._file.read(start + _POSTING * first, _POSTING * (last - first))
        references = raw[: _POSTING * (last - first)].view(">u4").astype(np.int64)
        positions = references * self._unit
        if last == behind:
            positions = np.append(positions, self.contents.series_end)
        if (
            positions[0] < self.contents.series
            or positions[-1] > self.contents.series_end
            or (np.diff(positions) <= 0).any()
        ):
            raise self._damaged(
                start + _POSTING * first, "the list of all series is not in order or leaves the section of series"
            )
        return positions

    def _read_version(self) -> int:
        if self._file.size < _HEADER + _TOC:
            raise self._damaged(self._file.size, "the file ends before its table of contents")
        magic, version = self._file.numbers(">IB", 0)
        if magic != _MAGIC:
            raise self._damaged(0, f"the file begins with {magic:#010x}, not with {_MAGIC:#010x} as an index does")
        if version not in (1, 2):
            raise self._damaged(4, f"version {version} of the index format is neither 1 nor 2")
        return int(version)

    def _read_contents(self) -> Contents:
        end = self._file.size - _TOC
        raw = self._file.read(end, _TOC)
        checksum = crc32c_continued(0, raw.ctypes.data, _TOC - _CHECKSUM)
        self._compare(checksum, raw[_TOC - _CHECKSUM : _TOC], end, "the table of contents at the end of the file")
        symbols, series, *others = struct.unpack_from(">6Q", raw.data)
        postings_table = others[-1]
        for name, position in (("symbols", symbols), ("series", series), ("postings table", postings_table)):
            if not _HEADER <= position <= end - 4:
                raise self._damaged(end, f"the table of contents puts {name} at byte {position}, outside of the file")
        series_end = min(position for position in (*others, end) if position >= series and position != 0)
        return Contents(symbols, series, series_end, postings_table, end)

    def _all_postings(self) -> tuple[int, int]:
        """The list of all series: where its references begin, and how many there are."""
        start = self._find_all_postings()
        if not _HEADER <= start <= self.contents.end - 12:
            raise self._damaged(
                self.contents.postings_table, f"the list of all series is at byte {start}, outside of the file"
            )
        length = self._section_length(start, "the list of all series")
        (count,) = self._file.numbers(">I", start + 4)
        if length != 4 + _POSTING * count:
            raise self._damaged(start, f"the list of all series has {count} entries in {length} bytes")
        return start + 8, count

    def _find_all_postings(self) -> int:
        """Where that list begins. Its entry in the postings table is normally the first."""
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
            piece = max(_PIECE, 0 if used else 4 * piece)

    def _section_length(self, start: int, name: str) -> int:
        """The length of what follows it, up to the checksum, which has to end before the table of contents."""
        (length,) = self._file.numbers(">I", start)
        if start + 4 + length + _CHECKSUM > self.contents.end:
            raise self._damaged(start, f"{name} of {length} bytes does not fit into the file")
        return int(length)

    def _check_section(self, start: int, name: str) -> None:
        at, end = start + 4, start + 4 + self._section_length(start, name)
        checksum = 0
        while at < end:
            size = min(_PIECE, end - at)
            piece = self._file.read(at, size)  # It has a name, so that it is alive while its address is in use.
            checksum = int(crc32c_continued(checksum, piece.ctypes.data, size))
            at += size
        self._compare(checksum, self._file.read(end, _CHECKSUM)[:_CHECKSUM], start, name)

    def _compare(self, found: int, stored: Bytes, position: int, name: str) -> None:
        (expected,) = struct.unpack(">I", stored.tobytes())
        if found != expected:
            raise self._damaged(position, f"{name} has checksum {found:#010x}, and {expected:#010x} is stored")

    def _damaged(self, position: int, reason: str) -> DamagedBlock:
        return DamagedBlock(self.path, position, reason)
