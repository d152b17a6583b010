"""Counts of what a job has read and dropped, their sum and their JSON form."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from strandline.wire.columns import Columns


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """What was read, and what was dropped from it, counted as a shard does."""

    records: int = 0
    bytes: int = 0
    samples: int = 0
    too_old: int = 0
    too_far_ahead: int = 0
    faults: int = 0
    skipped_histograms: int = 0
    skipped_exemplars: int = 0
    skipped_metadata: int = 0
    dropped_series: tuple[tuple[str, int], ...] = ()


_FIELDS = tuple(field.name for field in fields(RecordCounts))
_NUMBERS = tuple(name for name in _FIELDS if name != "dropped_series")


def counts_of(columns: Columns, *, records: int, nbytes: int, too_old: int, too_far_ahead: int) -> RecordCounts:
    """The counts of a decoded batch, counted as a shard does: `samples` includes those dropped for their time."""
    skipped = columns.skipped
    return RecordCounts(
        records=records,
        bytes=nbytes,
        samples=len(columns.time),
        too_old=too_old,
        too_far_ahead=too_far_ahead,
        faults=len(columns.faults),
        skipped_histograms=skipped.histograms,
        skipped_exemplars=skipped.exemplars,
        skipped_metadata=skipped.metadata,
        dropped_series=tuple(sorted((verdict.name, count) for verdict, count in skipped.series.items())),
    )


def sum_counts(some: Iterable[RecordCounts]) -> RecordCounts:
    """The sum of some counts."""
    numbers = dict.fromkeys(_NUMBERS, 0)
    dropped: Counter[str] = Counter()
    for one in some:
        for name in _NUMBERS:
            numbers[name] += getattr(one, name)
        if one.dropped_series:
            dropped.update(dict(one.dropped_series))
    return RecordCounts(**numbers, dropped_series=tuple(sorted(dropped.items())))


def counts_to_json(counts: RecordCounts) -> dict[str, Any]:
    """Counts as a JSON object."""
    return {name: getattr(counts, name) for name in _FIELDS}


def counts_from_json(found: dict[str, Any]) -> RecordCounts:
    """The inverse of `counts_to_json`. Raises `TypeError` or `ValueError` for anything else."""
    dropped = tuple((str(name), int(count)) for name, count in found["dropped_series"])
    return RecordCounts(**(found | {"dropped_series": dropped}))
