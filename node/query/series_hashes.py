"""How many distinct series several shards have. A series is in two shards if partitions were added."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from strandline.arrays import Rows, U64s
from strandline.index.bitmaps import to_ids
from strandline.index.catalogue import Catalogue
from strandline.index.part_columns import PartColumns
from strandline.node.query.answers import SeriesCount, SeriesHashesAnswer
from strandline.node.query.hash_samples import HashSample, distinct_share
from strandline.node.query.shard_requests import SeriesHashesRequest

_NO_ROWS: Rows = np.zeros(0, dtype=np.int64)


def series_hashes(
    catalogue: Catalogue, columns: PartColumns, request: SeriesHashesRequest, warnings: tuple[str, ...]
) -> SeriesHashesAnswer:
    """The answer of one shard."""
    known = columns.rows
    rows = known.rows_of(to_ids(catalogue.find(request.selectors, request.within).part_ids))
    # A series that was purged just now has no row.
    rows = rows[rows >= 0]
    series = len(rows)
    if series > request.limit:
        rows = rows[np.argpartition(known.key_low[rows], request.limit)[: request.limit]]
    return SeriesHashesAnswer(series, known.part_id[rows], known.key_low[rows], known.key_high[rows], warnings)


@dataclass(frozen=True, slots=True)
class DistinctSeries:
    """How many distinct series the shards have. `repeated` has, by shard, the part ids (as
    `CardinalityRequest.without`) of the series that a higher shard has, too. It is empty if the count is not exact.
    """

    count: SeriesCount
    repeated: Mapping[int, bytes]


def distinct_series(answers: Mapping[int, SeriesHashesAnswer]) -> DistinctSeries:
    """Merge the answers of shards, which are given by their numbers."""
    total = sum(answer.series for answer in answers.values())
    if len(answers) == 1:
        return DistinctSeries(SeriesCount(total), {})
    if any(len(answer.low) < answer.series for answer in answers.values()):
        samples = [HashSample(np.sort(answer.low), len(answer.low) == answer.series) for answer in answers.values()]
        largest = max(answer.series for answer in answers.values())
        return DistinctSeries(SeriesCount(max(largest, round(total * distinct_share(samples))), is_exact=False), {})
    shards = sorted(answers)
    low = np.concatenate([answers[shard].low for shard in shards])
    repeats = _repeated(low, np.concatenate([answers[shard].high for shard in shards]))
    bounds = np.cumsum([0, *(answers[shard].series for shard in shards)])
    repeated = {}
    for at, shard in enumerate(shards):
        own = repeats[(repeats >= bounds[at]) & (repeats < bounds[at + 1])] - bounds[at]
        if len(own):
            repeated[shard] = answers[shard].part_ids[own].astype("<u4").tobytes()
    return DistinctSeries(SeriesCount(total - len(repeats)), repeated)


def _repeated(low: U64s, high: U64s) -> Rows:
    """The positions of hashes that occur again at a higher position."""
    in_order = np.sort(low)
    if not (in_order[1:] == in_order[:-1]).any():
        # The usual case. This check takes a tenth of the time.
        return _NO_ROWS
    # Stable: equal hashes stay in the order of the shards.
    order = np.lexsort((high, low))
    again = (low[order][1:] == low[order][:-1]) & (high[order][1:] == high[order][:-1])
    positions: Rows = order[:-1][again]
    return positions
