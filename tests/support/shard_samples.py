"""All samples that a query of a shard finds, by the names of their series."""

import numpy as np

from strandline.index.bitmaps import to_bitmap
from strandline.index.documents import decode_part_key
from strandline.node.shard.reader import ShardReader
from strandline.node.shard.shard import Shard
from strandline.store.selecting import WantedSeries
from strandline.time_range import ALL_TIMES, TimeRange

Name = tuple[str, str]


def samples_in(shard: Shard, reader: ShardReader, times: TimeRange = ALL_TIMES) -> dict[Name, dict[int, float]]:
    """The samples of all keys in the index, by metric and name. Fails if a series has two at one time."""
    rows = shard.index.columns.rows
    rows = rows.take(rows.present())
    rows = rows.take(np.lexsort((rows.key_low, rows.key_high, rows.metric)))
    batch = shard.index._documents.fetch(to_bitmap(np.sort(rows.part_id)))
    names = {}
    for place in range(len(batch)):
        labels = decode_part_key(batch.part_key(place))
        low, high = batch.key_hashes[place].tolist()
        names[high, low] = (labels["__name__"], labels["name"])
    run = reader.read(WantedSeries(rows.metric, rows.key_high, rows.key_low), times)
    found: dict[Name, dict[int, float]] = {}
    for place in range(len(run)):
        samples = slice(int(run.first_sample[place]), int(run.first_sample[place + 1]))
        name = names[int(run.key_high[place]), int(run.key_low[place])]
        moments = run.time[samples].tolist()
        found[name] = dict(zip(moments, run.value[samples].tolist(), strict=True))
        assert len(found[name]) == len(moments), f"{name} has a sample twice"
    return found
