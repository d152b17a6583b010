"""Part keys as columns: sorting them by label, and selecting some."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, Rows, run_lengths, run_offsets
from strandline.index.kernels.gather import gather_runs
from strandline.index.kernels.key_order import order_by_labels

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class KeyBytes:
    """Part keys, in the layout of `strandline.index.documents`: key i is `data[offsets[i]:offsets[i + 1]]`."""

    offsets: I64s
    data: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def key(self, index: int) -> bytes:
        """Return one key, for display and tests."""
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes()


def label_order(keys: KeyBytes) -> Rows:
    """Return the indices of valid keys in the order of their labels."""
    order = np.empty(len(keys), dtype=np.int64)
    order_by_labels(keys.data, keys.offsets[:-1], keys.offsets[1:], order)
    return order


def in_label_order(keys: KeyBytes) -> KeyBytes:
    """Return valid keys in the order of their labels."""
    if len(keys) == 1 and keys.offsets[0] == 0 and keys.offsets[1] == len(keys.data):
        return keys
    return take_keys(keys, label_order(keys))


def take_keys(keys: KeyBytes, indices: Rows) -> KeyBytes:
    """Return the keys at these indices, in their order."""
    starts, ends = keys.offsets[indices], keys.offsets[indices + 1]
    offsets = run_offsets(ends - starts)
    data = np.empty(int(offsets[-1]), dtype=np.uint8)
    gather_runs(keys.data, starts, ends, data)
    return KeyBytes(offsets, data)


def joined_keys(parts: Sequence[KeyBytes]) -> KeyBytes:
    """Concatenate several lists."""
    if len(parts) == 1:
        return parts[0]
    lengths = [np.zeros(1, dtype=np.int64), *(run_lengths(part.offsets) for part in parts)]
    data = [part.data[part.offsets[0] : part.offsets[-1]] for part in parts]
    return KeyBytes(np.cumsum(np.concatenate(lengths)), np.concatenate((*data, np.empty(0, dtype=np.uint8))))
