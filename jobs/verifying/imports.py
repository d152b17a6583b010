"""Verifies an import: reads its source again, and its samples back from the node.

Samples that several parts contain, or that were overwritten since, are reported as different, with both values. A shard
that lags by a few seconds lacks samples without a warning, so missing samples are read again for a while.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np

from strandline.arrays import Bools
from strandline.clock import Clock
from strandline.errors import Retryable
from strandline.jobs.importing.part_sources import chunks_of, part_source, require_same_files
from strandline.jobs.importing.spec import ImportSpec
from strandline.jobs.landing.kernels.requests import MAX_ALONE
from strandline.jobs.sample_block import SampleBlock
from strandline.jobs.verifying.comparing import KeyedSamples, compare, last_of_each
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.time_range import TimeRange
from strandline.wire.label_texts import labels_text
from strandline.wire.splitting import MAX_PART_BYTES

MAX_EXAMPLES: Final = 20
_PARTS, _SERIES_PER_PART = 10, 20
_SERIES_PER_READ = 50
_RETRY_FOR_S = 20.0
_POLL_S = 1.0
Key = tuple[int, int]


class NotReadable(Retryable):
    """The node can't answer now, or not completely for the time range."""


@dataclass(frozen=True, slots=True)
class WantedSeries:
    """A series by its labels, encoded as in a `SampleBlock`, and the time range of its samples."""

    labels: bytes
    times: TimeRange


class SampleReader(Protocol):
    """Reads samples back. Raises `NotReadable` while they can't be read."""

    def read(self, series: Sequence[WantedSeries]) -> KeyedSamples: ...


@dataclass(frozen=True, slots=True)
class Difference:
    """A sent sample, and the value found: None if it is missing."""

    series: str
    time: int
    sent: float
    found: float | None


@dataclass(frozen=True, slots=True)
class ImportVerified:
    """The result of a verification. `expired` samples are older than the retention now. `unreadable` samples can't be
    read yet, because of `reason`.
    """

    parts: int = 0
    series: int = 0
    samples: int = 0
    missing: int = 0
    different: int = 0
    expired: int = 0
    unreadable: int = 0
    reason: str = ""
    examples: tuple[Difference, ...] = ()

    def __add__(self, other: "ImportVerified") -> "ImportVerified":
        return ImportVerified(
            self.parts + other.parts,
            self.series + other.series,
            self.samples + other.samples,
            self.missing + other.missing,
            self.different + other.different,
            self.expired + other.expired,
            self.unreadable + other.unreadable,
            self.reason or other.reason,
            (self.examples + other.examples)[:MAX_EXAMPLES],
        )


@dataclass(slots=True)
class _SentSamples:
    """The samples that a part has sent, of some or all series, and the labels of the series."""

    samples: KeyedSamples
    labels: Mapping[Key, bytes]
    expired: int


@dataclass(slots=True)
class ImportVerifier:
    """Verifies the parts of one job. `oldest` is the time before which samples have expired."""

    reader: SampleReader
    clock: Clock
    oldest: int
    retry_for_s: float = _RETRY_FOR_S
    _waited_s: float = field(default=0.0, init=False)

    def verify(self, job: BulkJob, parts: Sequence[BulkPart], *, all_of_it: bool) -> Iterator[ImportVerified]:
        """Verify each part that is done: some series of some parts, or everything."""
        done = [part for part in parts if part.outcome]
        if not all_of_it:
            done = [done[at] for at in sorted({index * len(done) // _PARTS for index in range(_PARTS)} if done else ())]
        spec = ImportSpec.from_json(job.spec)
        for part in done:
            yield self._part(part, spec, None if all_of_it else _SERIES_PER_PART)

    def _part(self, part: BulkPart, spec: ImportSpec, max_series: int | None) -> ImportVerified:
        sent = self._sent(part, spec, max_series)
        found = ImportVerified(parts=1, series=len(sent.labels), expired=sent.expired)
        # In the order of the samples.
        keys = sorted(sent.labels)
        for first in range(0, len(keys), _SERIES_PER_READ):
            found += self._compared(sent, keys[first : first + _SERIES_PER_READ])
        return found

    def _sent(self, part: BulkPart, spec: ImportSpec, max_series: int | None) -> _SentSamples:
        """Read a part's source again."""
        source = part_source(part.source)
        require_same_files(source)
        pieces: list[KeyedSamples] = []
        labels: dict[Key, bytes] = {}
        chosen: set[Key] | None = None
        expired = 0
        with chunks_of(source, spec) as chunks:
            for chunk in chunks:
                for _, block in chunk.blocks:
                    if max_series is not None and chosen is None and len(block.series):
                        chosen = set(sorted(_keys(block))[:max_series])
                    is_wanted = _landed(block, spec.times)
                    if chosen is not None:
                        of_series = np.array([key in chosen for key in _keys(block)], dtype=np.bool_)
                        is_wanted &= of_series[block.row]
                    is_old = block.times < self.oldest
                    expired += int(np.count_nonzero(is_wanted & is_old))
                    is_wanted &= ~is_old
                    pieces.append(_keyed(block, is_wanted))
                    _collect_labels(block, np.unique(block.row[is_wanted]).tolist(), labels)
        return _SentSamples(last_of_each(KeyedSamples.joined(pieces)), labels, expired)

    def _compared(self, sent: _SentSamples, keys: Sequence[Key]) -> ImportVerified:
        bounds = np.array([keys[0][0], keys[-1][0]], dtype=np.uint64)
        first = int(np.searchsorted(sent.samples.low, bounds[0], side="left"))
        stop = int(np.searchsorted(sent.samples.low, bounds[1], side="right"))
        mine = sent.samples.take(np.arange(first, stop))
        wanted = [WantedSeries(sent.labels[key], _times_of(mine, key)) for key in keys]
        try:
            while True:
                found = self.reader.read(wanted)
                compared = compare(mine, found)
                if not len(compared.missing) or self._waited_s >= self.retry_for_s:
                    break
                self.clock.sleep(_POLL_S)
                self._waited_s += _POLL_S
        except NotReadable as error:
            return ImportVerified(unreadable=len(mine), reason=error.message)
        examples = [
            *(_difference(mine, int(row), sent.labels, None) for row in compared.missing[:MAX_EXAMPLES]),
            *(
                _difference(mine, int(row), sent.labels, int(bits))
                for row, bits in zip(compared.different[:MAX_EXAMPLES], compared.found_bits, strict=False)
            ),
        ]
        counted = ImportVerified(samples=len(mine), missing=len(compared.missing), different=len(compared.different))
        return replace(counted, examples=tuple(examples[:MAX_EXAMPLES]))


def _keys(block: SampleBlock) -> list[Key]:
    return list(zip(block.series.key_low.tolist(), block.series.key_high.tolist(), strict=True))


def _landed(block: SampleBlock, times: TimeRange) -> Bools:
    """Which samples have landed: those within the time range, of series that fit into a record."""
    is_small = np.diff(block.series.starts) + MAX_ALONE <= MAX_PART_BYTES
    landed: Bools = (block.times >= times.first) & (block.times <= times.last) & is_small[block.row]
    return landed


def _keyed(block: SampleBlock, is_wanted: Bools) -> KeyedSamples:
    row = block.row[is_wanted]
    bits = block.values[is_wanted].view(np.uint64)
    return KeyedSamples(block.series.key_low[row], block.series.key_high[row], block.times[is_wanted], bits)


def _collect_labels(block: SampleBlock, rows: list[int], into: dict[Key, bytes]) -> None:
    series = block.series
    for row in rows:
        key = int(series.key_low[row]), int(series.key_high[row])
        if key not in into:
            into[key] = series.labels[series.starts[row] : series.starts[row + 1]].tobytes()


def _times_of(samples: KeyedSamples, key: Key) -> TimeRange:
    mine = samples.time[(samples.low == np.uint64(key[0])) & (samples.high == np.uint64(key[1]))]
    return TimeRange(int(mine.min()), int(mine.max()))


def _difference(samples: KeyedSamples, row: int, labels: Mapping[Key, bytes], found: int | None) -> Difference:
    key = int(samples.low[row]), int(samples.high[row])
    shown = None if found is None else _value(found)
    return Difference(labels_text(labels[key]), int(samples.time[row]), _value(int(samples.bits[row])), shown)


def _value(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
