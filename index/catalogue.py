"""Which series there are: by matchers and time, as bitmaps, as keys, and as label names and values.

Lucene finds keys whatever their times; the columns know when each began and ended. So a time range is applied to the
bitmap that Lucene gives. A key counts for a range if it was there at any moment of it: it began before the range ends,
and it is live or ended after the range begins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap

from strandline.arrays import I64s
from strandline.index.bitmaps import to_bitmap, to_ids
from strandline.index.documents import PartKeyBatch, TermCounts
from strandline.index.matchers import Matcher, RegexBudget, matchers_named, to_query
from strandline.index.part_columns import ABSENT, PartColumns
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.classes import Query
from strandline.index.pylucene.queries import part_id_in
from strandline.time_range import TimeRange


@dataclass(frozen=True, slots=True)
class SeriesFound:
    """Keys in rising order of their ids, with their starts and ends (`LIVE` while live); whether there are more."""

    keys: PartKeyBatch
    start: I64s
    end: I64s
    more: bool


class Catalogue:
    """Questions about one shard's series. It sees what Lucene's last refresh saw, and the columns as they are now."""

    def __init__(self, lucene: PartKeyIndex, columns: PartColumns, budget: RegexBudget) -> None:
        self._lucene = lucene
        self._columns = columns
        self._budget = budget

    def matching(self, matchers: Sequence[Matcher], within: TimeRange | None = None) -> BitMap:
        """The part ids of the keys that all matchers match and that were there in the range."""
        with matchers_named(matchers):
            found = self._lucene.search(to_query(matchers, self._budget))
        return self._present(found, within)

    def series(self, matchers: Sequence[Matcher], within: TimeRange | None = None, *, limit: int) -> SeriesFound:
        """The keys themselves, at most `limit` of them."""
        found = self.matching(matchers, within)
        chosen = found[:limit]
        keys = self._lucene.part_keys(part_id_in(chosen))
        keys = keys.take(np.argsort(keys.part_ids))
        known = self._columns.rows
        rows = known.rows_of(keys.part_ids)
        # One that was purged just now has no row any more.
        keys, rows = keys.take(np.flatnonzero(rows >= 0)), rows[rows >= 0]
        return SeriesFound(keys, known.start[rows], known.end[rows], more=len(chosen) < len(found))

    def label_names(
        self, matchers: Sequence[Matcher] = (), within: TimeRange | None = None, *, limit: int
    ) -> TermCounts:
        """The names of the labels that such keys have, with the number of keys that have each."""
        return self._lucene.label_names(self._restriction(matchers, within), limit=limit)

    def label_values(
        self, label: str, matchers: Sequence[Matcher] = (), within: TimeRange | None = None, *, limit: int
    ) -> TermCounts:
        """The values that a label has in such keys, with the number of keys that have each."""
        return self._lucene.label_values(label, self._restriction(matchers, within), limit=limit)

    def _restriction(self, matchers: Sequence[Matcher], within: TimeRange | None) -> Query | None:
        """A query for the keys that are asked about, or None for all of them, which Lucene lists fastest."""
        if not matchers and within is None:
            return None
        return part_id_in(self.matching(matchers, within))

    def _present(self, found: BitMap, within: TimeRange | None) -> BitMap:
        known, ids = self._columns.rows, to_ids(found)
        # Lucene may be ahead of the columns or behind them by a batch: an id that they do not know is no key.
        rows = known.rows_of(ids)
        ids, rows = ids[rows >= 0], rows[rows >= 0]
        end = known.end[rows]
        there = end != ABSENT
        if within is not None:
            there &= (known.start[rows] <= within.last) & (end >= within.first)
        return to_bitmap(ids[there])
