"""Invalid series and chunks of a block, as bad records."""

import numpy as np

from strandline.jobs.bad_records import MAX_EXAMPLES, MAX_EXCERPT, BadRecord, BadRecords
from strandline.jobs.formats.kernels.chunk_data import ChunkState
from strandline.jobs.formats.kernels.index_entries import EntryFault
from strandline.jobs.formats.prometheus_blocks.chunk_files import ChunkFiles, LocatedChunks
from strandline.jobs.formats.prometheus_blocks.index_file import EntryPiece
from strandline.jobs.formats.prometheus_blocks.series_entries import ParsedEntries
from strandline.jobs.series_building import LABEL_REASONS
from strandline.wire.label_texts import labels_text

_ENTRY_REASONS = {
    **{int(verdict): reason for verdict, reason in LABEL_REASONS.items()},
    int(EntryFault.CUT_OFF): "series entry is cut off",
    int(EntryFault.WRONG_CHECKSUM): "series entry has a wrong checksum",
    int(EntryFault.MALFORMED): "series entry is malformed",
}
_CHUNK_REASONS = {
    int(ChunkState.OUTSIDE): "chunk lies outside of its file",
    int(ChunkState.CUT_OFF): "chunk is cut off",
    int(ChunkState.WRONG_CHECKSUM): "chunk has a wrong checksum",
    int(ChunkState.NATIVE_HISTOGRAM): "native histogram",
    int(ChunkState.MALFORMED): "chunk is malformed",
}


def find_bad_entries(path: str, piece: EntryPiece, entries: ParsedEntries) -> tuple[int, BadRecords]:
    """The number of invalid entries in a piece of the index, and the bad records."""
    bad = np.flatnonzero(entries.outcomes)
    counts: dict[str, int] = {}
    for outcome, count in zip(*np.unique(entries.outcomes[bad], return_counts=True), strict=True):
        counts[_ENTRY_REASONS[int(outcome)]] = int(count)
    examples = tuple(
        BadRecord(int(piece.positions[entry]), 0, _ENTRY_REASONS[int(entries.outcomes[entry])], _path_in_block(path))
        for entry in bad[:MAX_EXAMPLES].tolist()
    )
    return len(bad), BadRecords(counts, examples)


class BadChunks:
    """Collects the invalid chunks of each `SampleBlock` in turn."""

    def __init__(self, files: ChunkFiles, entries: ParsedEntries) -> None:
        self._files = files
        self._entries = entries
        self._counts: dict[str, int] = {}
        self._examples: list[BadRecord] = []

    def add(self, chunks: LocatedChunks, first: int) -> None:
        """Add the invalid ones among decoded chunks, the first of which is chunk `first` of the piece."""
        bad = np.flatnonzero(chunks.states != ChunkState.XOR)
        if not len(bad):
            return
        kinds = (chunks.states[bad].astype(np.int64) << 8) | chunks.encodings[bad]
        for kind, count in zip(*np.unique(kinds, return_counts=True), strict=True):
            reason = _chunk_reason(int(kind) >> 8, int(kind) & 0xFF)
            self._counts[reason] = self._counts.get(reason, 0) + int(count)
        for index in bad[: MAX_EXAMPLES - len(self._examples)].tolist():
            self._examples.append(
                BadRecord(
                    int(self._entries.offsets[first + index]),
                    0,
                    _chunk_reason(int(chunks.states[index]), int(chunks.encodings[index])),
                    self._excerpt(first + index),
                )
            )

    def take(self) -> BadRecords:
        """The bad records since the last call."""
        taken = BadRecords(self._counts, tuple(sorted(self._examples)))
        self._counts, self._examples = {}, []
        return taken

    def _excerpt(self, chunk: int) -> str:
        entries = self._entries
        row = entries.chunk_rows[chunk]
        labels = labels_text(entries.labels[entries.starts[row] : entries.starts[row + 1]].tobytes())
        return f"{_path_in_block(self._files.path(int(entries.segments[chunk])))} {labels}"[:MAX_EXCERPT]


def _chunk_reason(state: int, encoding: int) -> str:
    return _CHUNK_REASONS.get(state, f"unknown chunk encoding {encoding}")


def _path_in_block(path: str) -> str:
    """The end of a path, starting with the name of the block."""
    parts = path.split("/")
    return "/".join(parts[-3:] if len(parts) > 1 and parts[-2] == "chunks" else parts[-2:])
