"""Estimates the result of an import: sections of its files are read and packed by the code that would import them, but
not landed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from strandline.clock import Clock
from strandline.jobs.formats.parquet import row_groups
from strandline.jobs.importing.block_parts import BlockPart
from strandline.jobs.importing.parquet_parts import ParquetPart
from strandline.jobs.importing.part_import import PartHooks, run_part
from strandline.jobs.importing.part_sources import PartSource, chunks_of
from strandline.jobs.importing.planning import ImportPlan
from strandline.jobs.importing.spec import ImportSpec
from strandline.jobs.importing.text_parts import TextPart
from strandline.jobs.landing.packing import PackedRecord
from strandline.jobs.landing.progress import Landed, Progress
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.sources.compressed import compression_of
from strandline.jobs.sources.files import file_system
from strandline.jobs.sources.source_errors import source_errors
from strandline.recovery.periods import HOUR

_PIECES = 16
_PIECE_BYTES = 256 << 10
# Fewer, because a chunk of a binary format has hundreds of thousands of rows.
_BINARY_PIECES = 4


@dataclass(frozen=True, slots=True)
class ImportEstimate:
    """An estimate for all parts of a plan. `sampled` is the number of records read, `bad` the number of bad ones among
    them by reason, and `nulls` their number of null values. The totals `records`, `samples` and `bad_records` are None
    if files are compressed, because their uncompressed size is unknown.

    `first` is the start of the earliest hour with a sample read, and `behind` the end of the latest, in milliseconds;
    None without a sample. `seconds` is the time for one process to read and pack everything, without the time of Kafka.
    """

    pieces: int
    sampled: int
    bad: Mapping[str, int] = field(default_factory=dict)
    records: int | None = None
    samples: int | None = None
    bad_records: int | None = None
    first: int | None = None
    behind: int | None = None
    seconds: float | None = None
    nulls: int = 0

    @property
    def hours(self) -> int:
        """The number of UTC hours from the earliest to the latest sample: an upper bound of the hours touched."""
        if self.first is None or self.behind is None:
            return 0
        return -(-self.behind // HOUR) - self.first // HOUR


@dataclass(frozen=True, slots=True)
class _Piece:
    """The first `chunks` chunks of a part. `size` is in bytes, and only for text."""

    source: PartSource
    chunks: int
    size: int = 0


class _DiscardingLog:
    """A `ChunkLog` that discards everything."""

    def partitions(self, deadline: float) -> int:
        """One, because no count depends on the partition."""
        del deadline
        return 1

    def land(self, chunk: int, records: Sequence[PackedRecord], progress: Progress, deadline: float) -> None:
        """Discard the chunk."""


def estimate_import(plan: ImportPlan, clock: Clock) -> ImportEstimate:
    """Read pieces spread over all parts. Raises the errors of reading them."""
    # So that a piece is not divided over more chunks, in which pieces are counted.
    spec = replace(plan.spec, rules=replace(plan.spec.rules, chunk_bytes=_PIECE_BYTES), packed_bytes=0)
    total, outcome = PartOutcome(), PartOutcome()
    read, seconds, timed = 0, 0.0, 0
    pieces = list(_pieces(plan))
    for number, piece in enumerate(pieces):
        began = clock.monotonic()
        outcome = _outcome_of(piece, spec)
        size = _size_of(piece, outcome)
        # The first one includes the time to load kernels.
        if number or len(pieces) == 1:
            seconds, timed = seconds + clock.monotonic() - began, timed + size
        total, read = total + outcome, read + size
    found = ImportEstimate(len(pieces), total.counts.records, dict(total.bad.counts), nulls=total.nulls)
    found = _with_times(found, plan, total)
    total_size = _total_size(plan)
    if total_size is None or not read:
        return found
    factor, counts = total_size / read, total.counts
    return replace(
        found,
        records=round(counts.records * factor),
        samples=round(counts.samples * factor),
        bad_records=round(counts.bad * factor),
        seconds=seconds * total_size / timed if timed else None,
    )


def _outcome_of(piece: _Piece, spec: ImportSpec) -> PartOutcome:
    hooks = PartHooks(deadline=lambda: float("inf"))
    with chunks_of(piece.source, spec) as chunks:
        return run_part(islice(chunks, piece.chunks), Landed(), _DiscardingLog(), spec.times, hooks)


def _pieces(plan: ImportPlan) -> Iterator[_Piece]:
    """The pieces to read, in the order of the files, including the first and the last bytes."""
    parts = [one for part in plan.parts for one in _smallest_sources(part)]
    for part in _evenly_spaced(parts, _PIECES if isinstance(plan.parts[0], TextPart) else _BINARY_PIECES):
        if not isinstance(part, TextPart):
            yield _Piece(part, 2)
        elif compression_of(part.uri) is not None:
            yield _Piece(part, 1, _PIECE_BYTES)
        elif plan.spec.rules.quote >= 0:
            # Only for the start of a part is it known whether it is within quotes.
            end = min(part.end, part.start + _PIECE_BYTES)
            yield _Piece(replace(part, end=end), 2, end - part.start)
        else:
            number = -(-_PIECES // min(len(plan.parts), _PIECES))
            yield from _text_pieces(part, max(number, 2) if part == plan.parts[-1] else number)


def _text_pieces(part: TextPart, number: int) -> Iterator[_Piece]:
    """`number` pieces of a part, or fewer if they would overlap, from its first bytes to its last."""
    length = part.end - part.start
    number = max(1, min(number, length // _PIECE_BYTES))
    for index in range(number):
        start = part.start + (length - _PIECE_BYTES) * index // max(1, number - 1)
        end = min(part.end, start + _PIECE_BYTES)
        yield _Piece(replace(part, start=start, end=end), 2, end - start)


def _smallest_sources(part: PartSource) -> Iterator[PartSource]:
    """The row groups of a Parquet part, or the part itself."""
    if isinstance(part, ParquetPart):
        yield from (replace(part, groups=(group,)) for group in part.groups)
    else:
        yield part


def _evenly_spaced(parts: Sequence[PartSource], limit: int) -> list[PartSource]:
    """At most `limit` parts: the first, the last, and some between them."""
    number = min(limit, len(parts))
    return [parts[(len(parts) - 1) * index // max(1, number - 1)] for index in range(number)]


def _size_of(piece: _Piece, outcome: PartOutcome) -> int:
    """The size of a piece in the unit of `_total_size`: bytes of text, rows of Parquet, samples of blocks."""
    match piece.source:
        case TextPart():
            return piece.size
        case ParquetPart():
            return outcome.counts.records
        case BlockPart():
            return outcome.counts.samples + outcome.counts.bad


def _total_size(plan: ImportPlan) -> int | None:
    """The size of all parts; None if it is unknown."""
    if any(isinstance(part, TextPart) and compression_of(part.uri) is not None for part in plan.parts):
        return None
    texts = sum(part.end - part.start for part in plan.parts if isinstance(part, TextPart))
    files = {part.uri for part in plan.parts if isinstance(part, ParquetPart)}
    rows = sum(map(_rows_of, files))
    blocks = {part.uri: part.block for part in plan.parts if isinstance(part, BlockPart)}
    return texts + rows + sum(block.samples for block in blocks.values())


def _rows_of(uri: str) -> int:
    with source_errors(uri):
        return sum(group.rows for group in row_groups(*file_system(uri)))


def _with_times(found: ImportEstimate, plan: ImportPlan, total: PartOutcome) -> ImportEstimate:
    blocks = [part.block for part in plan.parts if isinstance(part, BlockPart)]
    times = plan.spec.times
    if blocks:
        first, behind = min(block.min_time for block in blocks), max(block.max_time for block in blocks)
        return replace(found, first=max(first, times.first), behind=min(behind, times.last + 1))
    if not total.times.counts:
        return found
    steps = total.times.counts
    return replace(found, first=min(steps), behind=max(steps) + total.times.step_ms)
