"""Reads the samples of a range of a block's series.

Series are in the order of the index, and the samples of their chunks in the order of the entry. A record is a chunk, or
a series with an invalid entry.
"""

from collections.abc import Iterator

import numpy as np
from pyarrow.fs import FileSystem

from strandline.jobs.bad_records import BadRecords
from strandline.jobs.formats.kernels.chunk_data import decode_chunks
from strandline.jobs.formats.prometheus_blocks.bad_chunks import BadChunks, find_bad_entries
from strandline.jobs.formats.prometheus_blocks.block_info import BlockInfo
from strandline.jobs.formats.prometheus_blocks.chunk_files import ChunkFiles, LocatedChunks, runs_of
from strandline.jobs.formats.prometheus_blocks.index_file import IndexFile
from strandline.jobs.formats.prometheus_blocks.series_entries import ParsedEntries, parse_entries
from strandline.jobs.formats.prometheus_blocks.series_ranges import SeriesRange
from strandline.jobs.formats.prometheus_blocks.tombstones import Deleted, load_tombstones
from strandline.jobs.sample_block import SampleBlock
from strandline.wire.decode import Limits


def read_range(
    fs: FileSystem, block: BlockInfo, series: SeriesRange, max_samples: int, *, limits: Limits | None = None
) -> Iterator[SampleBlock]:
    """Read a range of series, in blocks of at most `max_samples` samples, or of one chunk.

    The same bytes and arguments result in the same blocks. Memory is limited to the symbol table, a piece of the index,
    a run of chunks and the samples of one block. Raises `DamagedBlock` for damage that affects more than single series
    and chunks.
    """
    if max_samples < 1:
        raise ValueError(f"max_samples = {max_samples} must be positive")
    limits = limits or Limits()
    with IndexFile(fs, block.path) as index, ChunkFiles(fs, block.path) as files:
        tombstones = load_tombstones(fs, block.path)
        symbols = index.read_symbols()
        for piece in index.entry_pieces(series.first, series.behind):
            entries = parse_entries(piece, symbols, limits)
            faulty, bad = find_bad_entries(index.path, piece, entries)
            deleted = tombstones.of(index.references(piece)[entries.entries])
            yield from _PieceReader(files, entries, deleted, max_samples).blocks(faulty, bad)


class _OpenBlock:
    """A block that is being filled."""

    def __init__(self, first_chunk: int, room: int) -> None:
        self.first_chunk = first_chunk
        self.room = room  # In samples by the chunk headers; fewer may be written.
        self.count = 0
        self.rows = np.empty(room, dtype=np.int32)
        self.times = np.empty(room, dtype=np.int64)
        self.values = np.empty(room, dtype=np.uint64)


class _PieceReader:
    """Reads the samples of the series in a piece of the index."""

    def __init__(self, files: ChunkFiles, entries: ParsedEntries, deleted: Deleted, max_samples: int) -> None:
        self._files = files
        self._entries = entries
        self._deleted = deleted
        self._max_samples = max_samples
        self._bad = BadChunks(files, entries)

    def blocks(self, faulty: int, bad_entries: BadRecords) -> Iterator[SampleBlock]:
        """All samples. The first block also has the invalid entries."""
        entries = self._entries
        open_block = _OpenBlock(0, self._max_samples)
        for begin, end in runs_of(entries.segments, entries.offsets):
            run = self._files.locate(int(entries.segments[begin]), entries.offsets[begin:end])
            samples = np.append(0, np.cumsum(run.counts))
            chunk = begin
            while chunk < end:
                max_cumulative = samples[chunk - begin] + open_block.room
                stop = begin + int(np.searchsorted(samples, max_cumulative, side="right")) - 1
                if stop == chunk:
                    if chunk > open_block.first_chunk:
                        yield self._close(open_block, chunk, faulty, bad_entries)
                        open_block, faulty, bad_entries = _OpenBlock(chunk, self._max_samples), 0, BadRecords()
                        continue
                    stop = chunk + 1
                    open_block = _OpenBlock(chunk, int(run.counts[chunk - begin]))
                part = run.part(chunk - begin, stop - begin)
                self._decode(part, chunk, open_block)
                open_block.room -= int(samples[stop - begin] - samples[chunk - begin])
                chunk = stop
        if len(entries.offsets) > open_block.first_chunk or faulty:
            yield self._close(open_block, len(entries.offsets), faulty, bad_entries)

    def _decode(self, chunks: LocatedChunks, first: int, block: _OpenBlock) -> None:
        rows = self._entries.chunk_rows
        block.count = int(
            decode_chunks(
                chunks.data,
                (chunks.starts, chunks.ends, chunks.counts, chunks.states),
                self._deleted,
                rows[first : first + len(chunks)],
                int(rows[block.first_chunk]),
                (block.rows, block.times, block.values),
                block.count,
            )
        )
        self._bad.add(chunks, first)

    def _close(self, block: _OpenBlock, stop: int, faulty: int, bad_entries: BadRecords) -> SampleBlock:
        rows = self._entries.chunk_rows[block.first_chunk : stop]
        first, last = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        return SampleBlock(
            series=self._entries.series(first, last),
            row=block.rows[: block.count],
            times=block.times[: block.count],
            values=block.values[: block.count].view(np.float64),
            records=len(rows) + faulty,
            bad=BadRecords.joined([bad_entries, self._bad.take()]),
        )
