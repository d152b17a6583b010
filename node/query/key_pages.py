"""Pages of series in the order of their key hashes, in one shard and merged over shards.

Bulk jobs divide series by their hashes, which do not change with restarts, owners or added partitions. A series belongs
to a page if it had a sample up to the end of the range and one since its beginning. The first sample of a series only
becomes earlier and the last one later, so a series that was in a page once stays in it until it is purged: a page that
is requested again has lost none.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from strandline.arrays import Bools, Rows, U32s, U64s
from strandline.index.bitmaps import to_ids
from strandline.index.catalogue import Catalogue
from strandline.index.key_bytes import KeyBytes, take_keys
from strandline.index.part_columns import PartColumns
from strandline.node.query.answers import NO_SAMPLE, KeyPageAnswer
from strandline.node.query.queries import Cancellation
from strandline.node.query.sampling import SampleCounter, select_series
from strandline.node.query.sampling_limits import check_samples
from strandline.node.query.shard_requests import KeyPageRequest
from strandline.node.shard.reader import ShardReader


def read_key_page(
    catalogue: Catalogue,
    columns: PartColumns,
    reader: ShardReader,
    request: KeyPageRequest,
    cancellation: Cancellation,
    *,
    warnings: tuple[str, ...],
) -> KeyPageAnswer:
    """The answer of one shard."""
    known = columns.rows
    rows = known.rows_of(to_ids(catalogue.find(request.selectors).part_ids))
    # A series purged meanwhile has no row.
    rows = rows[rows >= 0]
    rows = rows[(known.start[rows] <= request.within.last) & (known.last[rows] >= request.within.first)]
    low, high = known.key_low[rows], known.key_high[rows]
    rows = rows[~_is_before(low, high, request.first) & ~_is_after(low, high, request.last)]
    order = np.lexsort((known.key_high[rows], known.key_low[rows]))
    is_cut_off = len(rows) > request.limit
    rows = rows[order[: request.limit]]
    cancellation.check()
    part_ids = known.part_id[rows]
    batch = catalogue.keys_of(np.sort(part_ids), step=cancellation.check)
    keys, has_key = _in_order_of(KeyBytes(batch.offsets.astype(np.int64), batch.keys), batch.part_ids, part_ids)
    rows, part_ids = rows[has_key], part_ids[has_key]
    page = KeyPageAnswer(
        keys,
        known.key_low[rows],
        known.key_high[rows],
        known.start[rows],
        known.last[rows],
        np.full(len(rows), NO_SAMPLE),
        np.zeros(len(rows)),
        is_cut_off,
        warnings,
    )
    if not request.newest or not len(rows):
        return page
    return _with_newest(page, columns, reader, request, cancellation, part_ids=part_ids)


def merge_key_pages(answers: Sequence[KeyPageAnswer], limit: int) -> KeyPageAnswer:
    """Merge the pages of several shards, given in the order of their numbers. A series that is in two pages is in the
    result once, with the newer sample, or with that of the higher shard if both have the same time.
    """
    if len(answers) == 1:
        return answers[0]
    # Nothing is known of a shard after the end of its page if that was cut off.
    bound = min((_end_of(one) for one in answers if one.more), default=None)
    low, high = (np.concatenate([getattr(one, name) for one in answers]) for name in ("low", "high"))
    start, end = (np.concatenate([getattr(one, name) for one in answers]) for name in ("start", "end"))
    time, value = np.concatenate([one.time for one in answers]), np.concatenate([one.value for one in answers])
    shard = np.concatenate([np.full(len(one.keys), at) for at, one in enumerate(answers)])
    order = np.lexsort((shard, time, high, low))
    if bound is not None:
        order = order[~_is_after(low[order], high[order], bound)] if bound[0] >= 0 else order[:0]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (low[order][1:] != low[order][:-1]) | (high[order][1:] != high[order][:-1])
    starts = np.flatnonzero(first)
    # The last row of each hash has the newest sample.
    chosen = order[np.append(starts[1:], len(order)) - 1] if len(order) else order
    start = np.minimum.reduceat(start[order], starts) if len(starts) else start[order]
    end = np.maximum.reduceat(end[order], starts) if len(starts) else end[order]
    page = slice(0, limit)
    return KeyPageAnswer(
        take_keys(_concatenated([one.keys for one in answers]), chosen[page]),
        low[chosen][page],
        high[chosen][page],
        start[page],
        end[page],
        time[chosen][page],
        value[chosen][page],
        bound is not None or len(chosen) > limit,
        tuple(warning for one in answers for warning in one.warnings),
    )


def _end_of(page: KeyPageAnswer) -> tuple[int, int]:
    """The last hash of a page. If its series were purged meanwhile, a bound below all hashes, so that the page is
    requested again.
    """
    return (int(page.low[-1]), int(page.high[-1])) if len(page.keys) else (-1, -1)


def _with_newest(
    page: KeyPageAnswer,
    columns: PartColumns,
    reader: ShardReader,
    request: KeyPageRequest,
    cancellation: Cancellation,
    *,
    part_ids: U32s,
) -> KeyPageAnswer:
    selected = select_series(columns, np.sort(part_ids))
    run = reader.read(selected.series, request.within, SampleCounter(request.max_samples, cancellation))
    check_samples(run.samples, request.max_samples)
    newest = run.first_sample[1:] - 1
    by_id = np.argsort(part_ids)
    positions = by_id[np.searchsorted(part_ids, selected.of(run), sorter=by_id)]
    time, value = page.time.copy(), page.value.copy()
    time[positions], value[positions] = run.time[newest], run.value[newest]
    return replace(page, time=time, value=value)


def _in_order_of(keys: KeyBytes, ids: U32s, wanted: U32s) -> tuple[KeyBytes, Bools]:
    """The keys in the order of the wanted ids, and which of these have one: a series purged meanwhile has none."""
    if not len(ids):
        return keys, np.zeros(len(wanted), dtype=np.bool_)
    by_id = np.argsort(ids)
    positions = np.minimum(np.searchsorted(ids, wanted, sorter=by_id), len(ids) - 1)
    at = by_id[positions]
    has_key = ids[at] == wanted
    return take_keys(keys, at[has_key]), has_key


def _concatenated(some: Sequence[KeyBytes]) -> KeyBytes:
    before = np.cumsum([0, *(len(one.data) for one in some)])
    offsets: list[Rows] = [one.offsets[:-1] + shift for one, shift in zip(some, before[:-1], strict=True)]
    return KeyBytes(
        np.concatenate([*offsets, np.array([before[-1]], dtype=np.int64)]), np.concatenate([one.data for one in some])
    )


def _is_before(low: U64s, high: U64s, bound: tuple[int, int]) -> Bools:
    first, second = np.uint64(bound[0]), np.uint64(bound[1])
    before: Bools = (low < first) | ((low == first) & (high < second))
    return before


def _is_after(low: U64s, high: U64s, bound: tuple[int, int]) -> Bools:
    first, second = np.uint64(bound[0]), np.uint64(bound[1])
    after: Bools = (low > first) | ((low == first) & (high > second))
    return after
