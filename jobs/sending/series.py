"""Series as a template sees them, and where they come from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from strandline.time_range import TimeRange


@dataclass(frozen=True, slots=True)
class SentSeries:
    """A series: the 128 bits of its key hash, its labels, the times of its first and last sample, and its newest sample
    up to the moment at which the selector is evaluated, if there is one and it was asked for.
    """

    key: int
    labels: Mapping[str, str]
    start: int
    end: int
    time: int | None = None
    value: float | None = None

    @property
    def text(self) -> str:
        """Its labels on one line, in the order of their names; no two series have the same."""
        inside = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in sorted(self.labels.items()))
        return f"{{{', '.join(inside)}}}"


@dataclass(frozen=True, slots=True)
class SeriesQuery:
    """Series that a selector matches in a window of time, whose key hashes lie from `first` to `last`, both included;
    at most `limit`, those with the lowest hashes.
    """

    selector: str
    window: TimeRange
    first: int
    last: int
    limit: int
    newest: bool


@dataclass(frozen=True, slots=True)
class SeriesPage:
    """Series in the order of their key hashes, each once. If there are `more`, they lie behind these."""

    series: tuple[SentSeries, ...]
    more: bool


class SeriesSource(Protocol):
    """Gives series. Raises `Retryable` while the answer may lack some."""

    def page(self, query: SeriesQuery) -> SeriesPage: ...


def merge_pages(pages: Sequence[SeriesPage]) -> SeriesPage:
    """The pages of several nodes as one. A series that two of them have, since partitions were added, is there once,
    with the newer sample. Pure.
    """
    if len(pages) == 1:
        return pages[0]
    # Behind the end of a page that was cut off nothing is known of its node.
    bound = min((page.series[-1].key if page.series else -1 for page in pages if page.more), default=None)
    found: dict[int, SentSeries] = {}
    for one in (one for page in pages for one in page.series if bound is None or one.key <= bound):
        other = found.get(one.key)
        found[one.key] = one if other is None else _joined(other, one)
    return SeriesPage(tuple(found[key] for key in sorted(found)), any(page.more for page in pages))


def _joined(one: SentSeries, other: SentSeries) -> SentSeries:
    newer = one if other.time is None or (one.time is not None and one.time > other.time) else other
    return replace(newer, start=min(one.start, other.start), end=max(one.end, other.end))
