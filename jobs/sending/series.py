"""Series as the input of templates, and the protocol for reading them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from strandline.time_range import TimeRange


@dataclass(frozen=True, slots=True)
class SentSeries:
    """A series: its 128-bit key hash, its labels, the times of its first and last sample, and its newest sample up to
    the evaluation time, if it exists and was requested.
    """

    key: int
    labels: Mapping[str, str]
    start: int
    end: int
    time: int | None = None
    value: float | None = None

    @property
    def text(self) -> str:
        """Its labels on one line, sorted by name. Unique."""
        inside = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in sorted(self.labels.items()))
        return f"{{{', '.join(inside)}}}"


@dataclass(frozen=True, slots=True)
class SeriesQuery:
    """Requests the series that a selector matches in a time window, with key hashes from `first` to `last` (inclusive):
    at most `limit`, in the order of their hashes. `newest` requests the newest samples.
    """

    selector: str
    window: TimeRange
    first: int
    last: int
    limit: int
    newest: bool


@dataclass(frozen=True, slots=True)
class SeriesPage:
    """Distinct series in the order of their key hashes. `more` is whether there are more series after these."""

    series: tuple[SentSeries, ...]
    more: bool


class SeriesSource(Protocol):
    """Reads series. Raises `Retryable` if the answer may be incomplete."""

    def page(self, query: SeriesQuery) -> SeriesPage: ...


def merge_pages(pages: Sequence[SeriesPage]) -> SeriesPage:
    """Merge the pages of several nodes. A series that several nodes have, because partitions were added, appears once,
    with the newer sample. Pure.
    """
    if len(pages) == 1:
        return pages[0]
    # After the last series of an incomplete page, the node may have others.
    bound = min((page.series[-1].key if page.series else -1 for page in pages if page.more), default=None)
    found: dict[int, SentSeries] = {}
    for one in (one for page in pages for one in page.series if bound is None or one.key <= bound):
        other = found.get(one.key)
        found[one.key] = one if other is None else _joined(other, one)
    return SeriesPage(tuple(found[key] for key in sorted(found)), any(page.more for page in pages))


def _joined(one: SentSeries, other: SentSeries) -> SentSeries:
    newer = one if other.time is None or (one.time is not None and one.time > other.time) else other
    return replace(newer, start=min(one.start, other.start), end=max(one.end, other.end))
