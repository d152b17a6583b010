"""Parses the entries of a piece of the index to columns: series with canonical labels, and their chunks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, U64s
from strandline.jobs.formats.kernels.index_entries import read_entries
from strandline.jobs.formats.prometheus_blocks.index_file import EntryPiece, Symbols
from strandline.jobs.sample_block import SeriesColumns
from strandline.wire.decode import Limits
from strandline.wire.kernels.labels import MAX_LABELS

Arrays = tuple[npt.NDArray[Any], ...]


@dataclass(frozen=True, slots=True)
class ParsedEntries:
    """The valid series of a piece, their chunks in order, and the outcome of each entry.

    Series i is entry `entries[i]` of the piece. Chunk j belongs to series `chunk_rows[j]`. `outcomes` has a `Verdict`
    or an `EntryFault` for each entry, and 0 for a valid one.
    """

    outcomes: npt.NDArray[np.uint8]
    entries: npt.NDArray[np.int32]
    starts: I64s
    labels: npt.NDArray[np.uint8]
    key_low: U64s
    key_high: U64s
    chunk_rows: npt.NDArray[np.int32]
    segments: I64s
    offsets: I64s

    def series(self, first: int, stop: int) -> SeriesColumns:
        """A range of the series."""
        start, end = self.starts[first], self.starts[stop]
        return SeriesColumns(
            starts=self.starts[first : stop + 1] - start,
            labels=self.labels[start:end],
            key_low=self.key_low[first:stop],
            key_high=self.key_high[first:stop],
        )


def parse_entries(piece: EntryPiece, symbols: Symbols, limits: Limits) -> ParsedEntries:
    """Read, check and encode the entries of a piece."""
    count = len(piece)
    outcomes, entries = np.zeros(count, dtype=np.uint8), np.zeros(count, dtype=np.int32)
    starts = np.zeros(count + 1, dtype=np.int64)
    key_low, key_high = np.zeros(count, dtype=np.uint64), np.zeros(count, dtype=np.uint64)
    spans = np.empty((MAX_LABELS, 4), dtype=np.int64)
    labels: npt.NDArray[np.uint8] = np.empty(256 * count + 4096, dtype=np.uint8)
    chunks: Arrays = _chunk_columns(16 * count + 16)
    done = n_series = used = n_chunks = 0
    while True:
        done, n_series, used, n_chunks = read_entries(
            piece.data,
            int(piece.positions[0]),
            piece.positions,
            done,
            symbols.for_kernels(),
            (limits.labels, limits.label_name, limits.label_value),
            spans,
            (outcomes, entries, starts, key_low, key_high),
            n_series,
            labels,
            used,
            chunks,
            n_chunks,
        )
        if done == count:
            break
        # One of the two outputs was full; both are enlarged, because it does not matter which.
        longer = np.empty(2 * len(labels), dtype=np.uint8)
        longer[:used] = labels[:used]
        labels = longer
        more = _chunk_columns(2 * len(chunks[0]))
        for new, old in zip(more, chunks, strict=True):
            new[:n_chunks] = old[:n_chunks]
        chunks = more
    chunk_rows, segments, offsets = (column[:n_chunks] for column in chunks)
    return ParsedEntries(
        outcomes,
        entries[:n_series],
        starts[: n_series + 1],
        labels[:used],
        key_low[:n_series],
        key_high[:n_series],
        chunk_rows,
        segments,
        offsets,
    )


def _chunk_columns(count: int) -> Arrays:
    return tuple(np.empty(count, dtype=kind) for kind in ("i4", "i8", "i8"))
