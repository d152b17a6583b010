"""Reports what was lost with index buckets: series in segments without a key, for damaged buckets and for those whose
loss was accepted.
"""

from collections.abc import Set
from dataclasses import dataclass, field

from strandline.recovery.keyless_series import KeylessSeriesCounter, SegmentSeries
from strandline.recovery.verification.findings import FindingKind, Findings, NoteKind
from strandline.recovery.verification.group_segments import SeriesTimes
from strandline.recovery.verification.known_keys import KnownKeys


@dataclass(slots=True)
class LostKeys:
    """Collects the series of all segments. `known` are the keys in the readable part of the index."""

    known: KnownKeys
    damaged: Set[int]
    salvaged: Set[int]
    _everywhere: KeylessSeriesCounter = field(init=False)
    _by_bucket: dict[int, KeylessSeriesCounter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._everywhere = KeylessSeriesCounter(self.known.find)

    def take(self, bucket: int, series: SeriesTimes) -> None:
        """Add the series of one group of a bucket."""
        columns = SegmentSeries(series.key_low, series.key_high, series.samples, series.least, series.greatest)
        self._everywhere.take(columns)
        if bucket in self.damaged or bucket in self.salvaged:
            self._by_bucket.setdefault(bucket, KeylessSeriesCounter(self.known.find)).take(columns)

    def report(self, found: Findings) -> None:
        """Report what was lost, after all series were added."""
        for bucket in sorted(self.damaged & self._by_bucket.keys()):
            found.explain(FindingKind.INDEX_DAMAGED, bucket, self._described(bucket))
        for bucket in sorted(self.salvaged & self._by_bucket.keys()):
            found.note(
                NoteKind.INDEX_LOSS_ACCEPTED,
                f"part of this index bucket was lost, which an operator has accepted. {self._described(bucket)}",
                bucket=bucket,
            )
        everywhere = self._everywhere.counted()
        if everywhere.series:
            found.note(
                NoteKind.SERIES_WITHOUT_KEY,
                f"{everywhere} in all segments have no key in what can be read of the index: queries do not find them"
                " until a later sample names them again",
            )

    def _described(self, bucket: int) -> str:
        unnamed = self._by_bucket[bucket].counted()
        if unnamed.series:
            return f"In its segments {unnamed} have no key in what can be read of the index"
        return "All series in its segments have a key in what can be read of the index"
