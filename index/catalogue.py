"""Finds series by matchers and time, and returns them as bitmaps, as keys, or as label names and values.

Lucene finds keys of any time; the columns have each key's start and end. So a time range is applied to the bitmap that
Lucene returns. A key is in a range if it existed at any moment of it: it began before the end of the range, and is live
or ended after the start.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from strandline.arrays import I64s, U32s
from strandline.index.bitmaps import to_bitmap, to_ids
from strandline.index.cardinality import Cardinality, ValueCardinality
from strandline.index.documents import KeyList, PartKeyBatch, TermCounts
from strandline.index.key_labels import names_in, values_in
from strandline.index.key_lookup import packed_selectors
from strandline.index.matchers import Matcher, MatchOp, RegexBudget, matchers_named, to_query
from strandline.index.part_columns import ABSENT, PartColumns, PartRows
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.classes import Query
from strandline.index.pylucene.queries import all_of, any_of, part_id_in
from strandline.index.regular_expressions import General, InvalidExpression, analyse
from strandline.time_range import TimeRange

Selectors = Sequence[Sequence[Matcher]]


_NO_LIMIT = 2**32
# The number of keys per fetch: they pass through the Java heap, which is shared with other uses.
_KEYS_PER_FETCH = 20_000
# The maximum number of keys that are fetched by the search that finds them. If there are more, that work is lost, which
# is little compared with fetching them.
_MAX_FETCHED_KEYS = 1000
MAX_LISTED_KEYS = 20
"""Up to this many keys, labels are counted in Python."""


@dataclass(frozen=True, slots=True)
class SeriesFound:
    """Keys in ascending order of their ids, with their starts and ends (`LIVE` while live); `more`: whether there are
    further ones.
    """

    keys: PartKeyBatch
    start: I64s
    end: I64s
    more: bool


@dataclass(frozen=True, slots=True)
class Found:
    """The part ids that selectors match, and those of them that existed in the range."""

    selectors: Selectors
    matched: BitMap
    part_ids: BitMap


@dataclass(frozen=True, slots=True)
class CountedKeys:
    """Keys whose labels are counted: those that a query matches, or all of an index."""

    lucene: PartKeyIndex
    query: Query | None

    def cardinality(self, *, limit: int) -> Cardinality:
        """The labels and values with the most series."""
        return self.lucene.cardinality(self.query, limit=limit)

    def top_values(self, label: str, *, limit: int) -> list[ValueCardinality]:
        """The values of a label that the most of these keys have."""
        return self.lucene.top_values_by_series(label, self.query, limit=limit)

    def values(self, label: str) -> TermCounts:
        """All values of a label."""
        return self.lucene.label_values(label, self.query)


def _nothing() -> None:
    """Continue."""


class Catalogue:
    """Queries about one shard's series. It sees Lucene's state at the last refresh, and the current columns.

    A query has selectors, each a list of matchers: it selects the keys that all matchers of at least one selector
    match. No selectors select every key.
    """

    def __init__(
        self,
        lucene: PartKeyIndex,
        columns: PartColumns,
        budget: RegexBudget,
        *,
        has_purged_documents: Callable[[], bool] = lambda: False,
    ) -> None:
        """`has_purged_documents` returns whether Lucene may still have documents of purged keys."""
        self._lucene = lucene
        self._columns = columns
        self._budget = budget
        self._has_purged_documents = has_purged_documents

    def matching(self, matchers: Sequence[Matcher], within: TimeRange | None = None) -> BitMap:
        """The part ids of the keys that all matchers match and that existed in the range."""
        return self.find((matchers,), within).part_ids

    def find(self, selectors: Selectors, within: TimeRange | None = None) -> Found:
        """The same for several selectors. The expressions of each selector have the whole budget."""
        if not any(map(len, selectors)):
            # The columns have every key, so no search is needed.
            present = to_bitmap(self._present_ids(within))
            return Found((), present, present)
        matched = BitMap()
        for matchers in selectors:
            with matchers_named(matchers):
                matched |= self._lucene.search(to_query(matchers, self._budget))
        return Found(selectors, matched, self._present(matched, within))

    def series(self, matchers: Sequence[Matcher], within: TimeRange | None = None, *, limit: int) -> SeriesFound:
        """The keys themselves, at most `limit`."""
        found = self.find((matchers,), within)
        keys = self.keys(found, limit=limit)
        keys = keys.take(np.argsort(keys.part_ids))
        known = self._columns.rows
        rows = known.rows_of(keys.part_ids)
        # A key that was just purged has no row.
        keys, rows = keys.take(np.flatnonzero(rows >= 0)), rows[rows >= 0]
        return SeriesFound(keys, known.start[rows], known.end[rows], more=limit < len(found.part_ids))

    def keys(self, found: Found, *, limit: int = _NO_LIMIT, step: Callable[[], None] = _nothing) -> PartKeyBatch:
        """The keys that were found, at most `limit`, in any order; without those that were purged in the meantime.

        `step` is called between pieces of the work, and aborts it by raising.
        """
        if len(found.part_ids) <= min(limit, _KEYS_PER_FETCH) and _is_cheap(found.selectors):
            keys = self._lucene.part_keys(self._query_for(found))
            # The index may have been refreshed since it was searched.
            if len(keys) == len(found.part_ids) and to_bitmap(keys.part_ids) == found.part_ids:
                return keys
            wanted = to_ids(found.part_ids)
            return keys.take(np.flatnonzero(np.isin(keys.part_ids, wanted)))
        return self.keys_of(to_ids(found.part_ids)[:limit], step=step)

    def keys_up_to(
        self, selectors: Selectors, within: TimeRange | None = None, *, max_keys: int = _MAX_FETCHED_KEYS
    ) -> KeyList | None:
        """The keys that selectors match and that existed in the range, in any order, by one search. None if more than
        `max_keys` match, at any time, or if that would be expensive to determine.
        """
        packed = packed_selectors(selectors)
        if packed is not None:
            keys = self._lucene.part_keys_with_labels(packed, max_keys)
        elif any(map(len, selectors)) and _is_cheap(selectors):
            keys = self._lucene.part_keys_up_to(self._any_of(selectors), max_keys)
        else:
            return None
        if keys is None or len(keys) == 0:
            return keys
        known = self._columns.rows
        if len(keys) == 1 and _is_there(known, keys.part_ids.item(), within):
            return keys
        order = np.argsort(keys.part_ids)
        rows = known.rows_of(keys.part_ids[order])
        there = rows >= 0
        there[there] = _there(known.start[rows[there]], known.end[rows[there]], within)
        return keys if there.all() else keys.take(order[there])

    def keys_of(self, part_ids: U32s, *, step: Callable[[], None] = _nothing) -> PartKeyBatch:
        """The keys of some ids, under the rules of `keys`."""
        pieces = []
        for first in range(0, max(1, len(part_ids)), _KEYS_PER_FETCH):
            if first:
                step()
            wanted = to_bitmap(part_ids[first : first + _KEYS_PER_FETCH])
            pieces.append(self._lucene.part_keys(part_id_in(wanted)))
        return _joined(pieces)

    def label_names(self, *selectors: Sequence[Matcher], within: TimeRange | None = None, limit: int) -> TermCounts:
        """The names of the selected keys' labels, with the number of keys that have each."""
        few = self.keys_up_to(selectors, within, max_keys=MAX_LISTED_KEYS)
        if few is not None:
            return names_in(few, limit=limit)
        restriction = self._restriction(selectors, within)
        return replace(self._lucene.label_names(restriction, limit=limit), of_all=restriction is None)

    def label_values(
        self,
        label: str,
        *selectors: Sequence[Matcher],
        within: TimeRange | None = None,
        limit: int,
    ) -> TermCounts:
        """The values of a label in the selected keys, with the number of keys that have each."""
        few = self.keys_up_to(selectors, within, max_keys=MAX_LISTED_KEYS)
        if few is not None:
            return values_in(few, label, limit=limit)
        restriction = self._restriction(selectors, within)
        return replace(self._lucene.label_values(label, restriction, limit=limit), of_all=restriction is None)

    def counted(
        self, *selectors: Sequence[Matcher], within: TimeRange | None = None, without: U32s | None = None
    ) -> CountedKeys:
        """The selected keys, for counting, except the part ids `without`."""
        if without is None or not len(without):
            return CountedKeys(self._lucene, self._restriction(selectors, within))
        kept = self.find(selectors, within).part_ids - to_bitmap(without)
        return CountedKeys(self._lucene, part_id_in(kept))

    def _restriction(self, selectors: Selectors, within: TimeRange | None) -> Query | None:
        """Return a query for the selected keys, or None for all keys, which Lucene lists fastest."""
        if any(map(len, selectors)):
            return self._query_for(self.find(selectors, within))
        may_be_all = not self._has_purged_documents()
        # Most ranges include the present, and few keys end.
        if may_be_all and (within is None or self._columns.span().lies_in(within.first, within.last)):
            return None
        known = self._columns.rows
        there = _there(known.start, known.end, within)
        if may_be_all and np.count_nonzero(there) == np.count_nonzero(known.end != ABSENT):
            return None
        return part_id_in(to_bitmap(known.part_id[there]))

    def _query_for(self, found: Found) -> Query:
        """Return a query for the keys that were found, for one search.

        For ids, Lucene reads whole blocks, so ids that are far apart are found faster by their labels.
        """
        gone = found.matched - found.part_ids
        if len(gone) > len(found.part_ids) or not _is_cheap(found.selectors):
            return part_id_in(found.part_ids)
        query = self._any_of(found.selectors)
        return all_of([query], but_none_of=[part_id_in(gone)]) if gone else query

    def _any_of(self, selectors: Selectors) -> Query:
        return any_of([to_query(matchers, self._budget) for matchers in selectors])

    def _present_ids(self, within: TimeRange | None) -> U32s:
        known = self._columns.rows
        return known.part_id[_there(known.start, known.end, within)]

    def _present(self, found: BitMap, within: TimeRange | None) -> BitMap:
        known, ids = self._columns.rows, to_ids(found)
        # Lucene may be a batch ahead of the columns, or behind them: ids that the columns don't have are skipped.
        rows = known.rows_of(ids)
        if len(rows) and rows.min() < 0:
            ids, rows = ids[rows >= 0], rows[rows >= 0]
        there = _there(known.start[rows], known.end[rows], within)
        return found if there.all() and len(ids) == len(found) else to_bitmap(ids[there])


def _there(start: I64s, end: I64s, within: TimeRange | None) -> npt.NDArray[np.bool_]:
    """Return a mask of the keys that existed at some moment of a range."""
    there: npt.NDArray[np.bool_] = end != ABSENT
    if within is not None:
        there &= (start <= within.last) & (end >= within.first)
    return there


def _is_there(known: PartRows, part_id: int, within: TimeRange | None) -> bool:
    """The same for one part id, without arrays of one element, which would cost as much as a search."""
    row = known.row_of(part_id)
    if row < 0:
        return False
    end = known.end.item(row)
    return end != ABSENT and (within is None or (known.start.item(row) <= within.last and end >= within.first))


def _is_cheap(selectors: Selectors) -> bool:
    """Whether a search may be done twice: there are selectors, and no expression that has to be matched against every
    value.
    """
    expressions = [one.value for some in selectors for one in some if one.op in (MatchOp.MATCH, MatchOp.NOT_MATCH)]
    try:
        return bool(selectors) and not any(isinstance(analyse(one), General) for one in expressions)
    except InvalidExpression:
        return False  # A search reports the error.


def _joined(pieces: Sequence[PartKeyBatch]) -> PartKeyBatch:
    if len(pieces) == 1:
        return pieces[0]
    shifts = np.cumsum([0, *(len(piece.keys) for piece in pieces)])
    ends = [piece.offsets[1:] + shift for piece, shift in zip(pieces, shifts, strict=False)]
    return PartKeyBatch(
        np.concatenate([piece.part_ids for piece in pieces]),
        np.concatenate([piece.key_hashes for piece in pieces]),
        np.concatenate([np.zeros(1, dtype=np.int64), *ends]),
        np.concatenate([piece.keys for piece in pieces]),
    )
