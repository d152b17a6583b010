"""Keys for lookup servers: in an index, and with their times in columns."""

from collections.abc import Iterable, Mapping

import numpy as np

from strandline.index.documents import PartKeyBatch, encode_part_key
from strandline.index.part_columns import LIVE, PartColumns, PartRows
from strandline.index.part_key_index import PartKeyIndex

Labels = Mapping[str, str]


def add_keys(index: PartKeyIndex, keys: Mapping[int, Labels]) -> None:
    """Add keys to an index by part id, and make them visible to searches."""
    index.add(PartKeyBatch.of(list(keys), [(1, key) for key in keys], map(encode_part_key, keys.values())))
    index.refresh()


def key_rows(times: Mapping[int, tuple[int, int]]) -> PartRows:
    """The rows of keys with their starts and ends, in the order of their part ids."""
    rows = PartRows.new_keys(np.array(list(times), dtype=np.uint32), *(np.zeros(len(times), np.uint64),) * 3)
    rows.start[:] = [start for start, _ in times.values()]
    rows.end[:] = [end for _, end in times.values()]
    return rows


def live_columns(part_ids: Iterable[int]) -> PartColumns:
    """Columns of keys that have always been live."""
    return PartColumns(key_rows(dict.fromkeys(part_ids, (0, LIVE))))
