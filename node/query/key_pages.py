"""Pages of series in the order of their key hashes, in one shard and merged over shards.

Bulk jobs divide series by their hashes: a hash stays what it is across restarts, owners and added partitions. A series
counts if it had a sample up to the end of the range and one since its beginning. Of a series first and last sample move
apart only, so that one which has counted once counts until it is purged, and a page that is asked for again has lost
none.
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
    """What one shard answers."""
    known = columns.rows
    rows = known.rows_of(to_ids(catalogue.find(request.selectors).part_ids))
    # A series that was purged just now has no row.
    rows = rows[rows >= 0]
    rows = rows[(known.start[rows] <= request.within.last) & (known.last[rows] >= request.within.first)]
    low, high = known.key_low[rows], known.key_high[rows]
    rows = rows[~_is_before(low, high, request.first) & ~_is_behind(low, high, request.last)]
    order = np.lexsort((known.key_high[rows], known.key_low[rows]))
    is_cut_off = len(rows) > request.limit
    rows = rows[order[: request.limit]]
    cancellation.check()
    part_ids = known.part_id[rows]
    batch = catalogue.keys_of(np.sort(part_ids), step=cancellation.check)
    keys, there = _in_order_of(KeyBytes(batch.offsets.astype(np.int64), batch.keys), batch.part_ids, part_ids)
    rows, part_ids = rows[there], part_ids[there]
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
    """The pages of several shards, in the order of their numbers, as one: a series that is in two of them once, with
    the newer sample, and with that of the higher shard where both are of one time.
    """
    if len(answers) == 1:
        return answers[0]
    # Behind the end of a page that was cut off nothing is known of its shard.
    bound = min((_end_of(one) for one in answers if one.more), default=None)
    low, high = (np.concatenate([getattr(one, name) for one in answers]) for name in ("low", "high"))
    start, end = (np.concatenate([getattr(one, name) for one in answers]) for name in ("start", "end"))
    time, value = np.concatenate([one.time for one in answers]), np.concatenate([one.value for one in answers])
    shard = np.concatenate([np.full(len(one.keys), at) for at, one in enumerate(answers)])
    order = np.lexsort((shard, time, high, low))
    if bound is not None:
        order = order[~_is_behind(low[order], high[order], bound)] if bound[0] >= 0 else order[:0]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (low[order][1:] != low[order][:-1]) | (high[order][1:] != high[order][:-1])
    begins = np.flatnonzero(first)
    # The last one of each hash has the newest sample.
    chosen = order[np.append(begins[1:], len(order)) - 1] if len(order) else order
    start = np.minimum.reduceat(start[order], begins) if len(begins) else start[order]
    end = np.maximum.reduceat(end[order], begins) if len(begins) else end[order]
    kept = slice(0, limit)
    return KeyPageAnswer(
        take_keys(_joined([one.keys for one in answers]), chosen[kept]),
        low[chosen][kept],
        high[chosen][kept],
        start[kept],
        end[kept],
        time[chosen][kept],
        value[chosen][kept],
        bound is not None or len(chosen) > limit,
        tuple(warning for one in answers for warning in one.warnings),
    )


def _end_of(page: KeyPageAnswer) -> tuple[int, int]:
    """The last hash of a page; that before all others if its series were purged meanwhile, so that it is asked for
    again.
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
    wanted = select_series(columns, np.sort(part_ids))
    run = reader.read(wanted.series, request.within, SampleCounter(request.max_samples, cancellation))
    check_samples(run.samples, request.max_samples)
    newest = run.first_sample[1:] - 1
    by_id = np.argsort(part_ids)
    places = by_id[np.searchsorted(part_ids, wanted.of(run), sorter=by_id)]
    time, value = page.time.copy(), page.value.copy()
    time[places], value[places] = run.time[newest], run.value[newest]
    return replace(page, time=time, value=value)


def _in_order_of(keys: KeyBytes, ids: U32s, wanted: U32s) -> tuple[KeyBytes, Bools]:
    """The keys of wanted ids, and which of these have one: one that was purged meanwhile has none."""
    if not len(ids):
        return keys, np.zeros(len(wanted), dtype=np.bool_)
    by_id = np.argsort(ids)
    places = np.minimum(np.searchsorted(ids, wanted, sorter=by_id), len(ids) - 1)
    at = by_id[places]
    there = ids[at] == wanted
    return take_keys(keys, at[there]), there


def _joined(some: Sequence[KeyBytes]) -> KeyBytes:
    before = np.cumsum([0, *(len(one.data) for one in some)])
    offsets: list[Rows] = [one.offsets[:-1] + shift for one, shift in zip(some, before[:-1], strict=True)]
    return KeyBytes(
        np.concatenate([*offsets, np.array([before[-1]], dtype=np.int64)]), np.concatenate([one.data for one in some])
    )


def _is_before(low: U64s, high: U64s, bound: tuple[int, int]) -> Bools:
    first, second = np.uint64(bound[0]), np.uint64(bound[1])
    before: Bools = (low < first) | ((low == first) & (high < second))
    return before


def _is_behind(low: U64s, high: U64s, bound: tuple[int, int]) -> Bools:
    first, second = np.uint64(bound[0]), np.uint64(bound[1])
    behind: Bools = (low > first) | ((low == first) & (high > second))
    return behind
