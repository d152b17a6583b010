"""Makes part keys of series that the index does not have yet, from the columns of decoded records."""

import numpy as np
import numpy.typing as npt

from strandline.arrays import Rows, U32s, U64s
from strandline.index.documents import PartKeyBatch
from strandline.index.kernels.part_keys import from_labels, hash_part_keys
from strandline.index.key_summary import PartKeyBytes
from strandline.wire.columns import Columns


def new_key_batch(columns: Columns, rows: Rows, part_ids: U32s) -> PartKeyBatch:
    """Return the part keys of some rows of a decoded batch, with these ids."""
    found = part_key_bytes(columns, rows)
    hashes = np.column_stack((columns.key_low[rows], columns.key_high[rows]))
    return PartKeyBatch(part_ids, hashes, found.offsets, found.keys)


def part_key_bytes(columns: Columns, rows: Rows) -> PartKeyBytes:
    """Return the part keys of some rows of a decoded batch."""
    starts = columns.labels_start[rows]
    ends = starts + columns.labels_length[rows]
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    keys = np.empty(int((ends - starts).sum()), dtype=np.uint8)
    from_labels(columns.data, starts, ends, keys, offsets)
    return PartKeyBytes(offsets, keys[: offsets[-1]])


def key_hashes(keys: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> tuple[U64s, U64s]:
    """Compute the hash of each part key, as decoding a record with that series would."""
    low, high = np.empty(len(offsets) - 1, dtype=np.uint64), np.empty(len(offsets) - 1, dtype=np.uint64)
    hash_part_keys(keys, offsets, low, high)
    return low, high
