"""Part keys as columns: in the order of their labels, and some of them."""

import numpy as np

from strandline.arrays import Rows
from strandline.index.kernels.gather import gather_runs
from strandline.index.kernels.key_order import order_by_labels
from strandline.node.query.answers import KeyBytes


def label_order(keys: KeyBytes) -> Rows:
    """The places of sound keys in the order of their labels."""
    order = np.empty(len(keys), dtype=np.int64)
    order_by_labels(keys.data, keys.offsets[:-1], keys.offsets[1:], order)
    return order


def in_label_order(keys: KeyBytes) -> KeyBytes:
    """Sound keys in the order of their labels."""
    if len(keys) == 1 and keys.offsets[0] == 0 and keys.offsets[1] == len(keys.data):
        return keys
    return take_keys(keys, label_order(keys))


def take_keys(keys: KeyBytes, places: Rows) -> KeyBytes:
    """The keys at these places, in their order."""
    starts, ends = keys.offsets[places], keys.offsets[places + 1]
    offsets = np.zeros(len(places) + 1, dtype=np.int64)
    np.cumsum(ends - starts, out=offsets[1:])
    data = np.empty(int(offsets[-1]), dtype=np.uint8)
    gather_runs(keys.data, starts, ends, data)
    return KeyBytes(offsets, data)
