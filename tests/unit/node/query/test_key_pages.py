"""Merging key pages of several shards, and of several nodes, compared with a model in plain Python."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.documents import decode_part_key, encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.jobs.sending.series import SentSeries, SeriesPage, merge_pages
from strandline.node.query.answers import KeyPageAnswer
from strandline.node.query.key_pages import merge_key_pages

pytestmark = pytest.mark.unit

# A small range of hashes, so that shards share series. A truncated page may have lost series, even all, to a purge.
HASHES = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8).map(sorted)
PAGES = st.lists(st.tuples(HASHES, st.booleans()), min_size=1, max_size=4)
Pages = list[tuple[list[tuple[int, int]], bool]]


def shard_page(shard: int, hashes: list[tuple[int, int]], more: bool) -> KeyPageAnswer:
    keys = [encode_part_key({"low": str(low), "high": str(high)}) for low, high in hashes]
    words = np.array(hashes, dtype=np.uint64).reshape(-1, 2)
    series, times = len(hashes), words[:, 0].astype(np.int64)
    return KeyPageAnswer(
        KeyBytes(np.cumsum([0, *map(len, keys)]), np.frombuffer(b"".join(keys), dtype=np.uint8)),
        words[:, 0].copy(),
        words[:, 1].copy(),
        times - shard,
        times + shard,
        # The newest sample is that of shard 1 or 2, whichever is higher.
        np.full(series, min(shard, 1)),
        np.full(series, float(shard)),
        more,
    )


def of_shards(pages: Pages, limit: int) -> tuple[list[tuple[tuple[int, int], int, int, float]], bool]:
    merged = merge_key_pages([shard_page(shard, *page) for shard, page in enumerate(pages)], limit)
    merged_series = []
    for at in range(len(merged.keys)):
        labels = dict(decode_part_key(merged.keys.key(at)))
        key = int(merged.low[at]), int(merged.high[at])
        assert (labels["low"], labels["high"]) == (str(key[0]), str(key[1]))
        merged_series.append((key, int(merged.start[at]), int(merged.end[at]), float(merged.value[at])))
    return merged_series, merged.more


def of_nodes(pages: Pages, limit: int) -> tuple[list[tuple[tuple[int, int], int, int, float]], bool]:
    pages_of_nodes = [
        SeriesPage(
            tuple(
                SentSeries(16 * low + high, {}, low - node, low + node, min(node, 1), float(node))
                for low, high in hashes
            ),
            more,
        )
        for node, (hashes, more) in enumerate(pages)
    ]
    merged = merge_pages(pages_of_nodes)
    merged_series = [
        (divmod(hashes.key, 16), hashes.start, hashes.end, hashes.value or 0.0) for hashes in merged.series
    ]
    return merged_series[:limit], merged.more or len(merged_series) > limit


@pytest.mark.parametrize("merge", [of_shards, of_nodes])
@given(pages=PAGES, limit=st.integers(8, 20))
def test_merged_pages_have_every_series_up_to_the_first_pages_end_once(
    merge: Callable[[Pages, int], object], pages: Pages, limit: int
) -> None:
    ends = [hashes[-1] if hashes else (-1, -1) for hashes, more in pages if more]
    # A single page is returned unchanged.
    bound = min(ends) if ends and len(pages) > 1 else (9, 9)
    expected = []
    for key in sorted({key for hashes, _ in pages for key in hashes if key <= bound}):
        holders = [number for number, (hashes, _) in enumerate(pages) if key in hashes]
        expected.append((key, key[0] - max(holders), key[0] + max(holders), float(max(holders))))
    assert merge(pages, limit) == (expected[:limit], bool(ends) or len(expected) > limit)
