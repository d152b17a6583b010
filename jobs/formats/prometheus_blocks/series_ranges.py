"""Divides the series of a block into ranges, which can be read independently."""

from dataclasses import dataclass

import numpy as np
from pyarrow.fs import FileSystem

from strandline.jobs.formats.kernels.index_entries import count_chunks
from strandline.jobs.formats.prometheus_blocks.block_info import BlockInfo
from strandline.jobs.formats.prometheus_blocks.index_file import IndexFile

_CHUNK_SAMPLES = 120  # The usual number in Prometheus, for a block that does not report its number of samples.


@dataclass(frozen=True, slots=True)
class SeriesRange:
    """A range of series [first, behind), by their position in the index, and their number of chunks, from which the
    number of samples can be estimated.
    """

    first: int
    behind: int
    chunks: int


def plan_ranges(fs: FileSystem, block: BlockInfo, max_samples: int) -> list[SeriesRange]:
    """Divide a block's series into ranges of about `max_samples` samples, or one series.

    The result depends on the index and meta.json only. The index does not have the number of samples of a chunk, so
    they are estimated by the block's mean. Raises `DamagedBlock`.
    """
    if max_samples < 1:
        raise ValueError(f"max_samples = {max_samples} must be positive")
    max_chunks = _chunks_of(block, max_samples)
    ranges: list[SeriesRange] = []
    first = held = 0
    with IndexFile(fs, block.path) as index:
        index.check_postings()
        count = index.series_count()
        for piece in index.entry_pieces(0, count):
            chunks = np.zeros(len(piece), dtype=np.int64)
            count_chunks(piece.data, int(piece.positions[0]), piece.positions, chunks)
            before = np.append(0, np.cumsum(chunks))
            done = 0  # Number of series of this piece.
            while True:
                # As many series as fit in addition to those before this piece, but at least one.
                fitting = int(np.searchsorted(before, before[done] + max_chunks - held, side="right")) - 1
                if piece.first + done == first:
                    fitting = max(fitting, done + 1)
                if fitting >= len(piece):
                    held += int(before[-1] - before[done])
                    break
                fitting = max(fitting, done)
                held += int(before[fitting] - before[done])
                ranges.append(SeriesRange(first, piece.first + fitting, held))
                first, done, held = piece.first + fitting, fitting, 0
    if first < count:
        ranges.append(SeriesRange(first, count, held))
    return ranges


def _chunks_of(block: BlockInfo, samples: int) -> int:
    if block.samples > 0 and block.chunks > 0:
        return max(1, samples * block.chunks // block.samples)
    return max(1, samples // _CHUNK_SAMPLES)
