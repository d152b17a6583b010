"""The columns of an answer, as the kernels read them."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from strandline.arrays import I64s, U64s
from strandline.index.key_bytes import Bytes
from strandline.node.query.answers import SamplesAnswer

Addresses = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """The arrays of an answer, contiguous and of the types that the kernels read. Values are their bits, which
    preserves every NaN.
    """

    offsets: I64s
    keys: Bytes
    first_sample: I64s
    time: I64s
    value: U64s

    @classmethod
    def of(cls, answer: SamplesAnswer) -> Self:
        """The columns of an answer, usually as views."""
        value = np.ascontiguousarray(answer.value, dtype=np.float64)
        return cls(
            np.ascontiguousarray(answer.keys.offsets, dtype=np.int64),
            np.ascontiguousarray(answer.keys.data, dtype=np.uint8),
            np.ascontiguousarray(answer.first_sample, dtype=np.int64),
            np.ascontiguousarray(answer.time, dtype=np.int64),
            value.view(np.uint64),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def addresses(self) -> Addresses:
        """The addresses of the arrays. Valid while this object exists."""
        return (
            self.offsets.ctypes.data,
            self.keys.ctypes.data,
            self.first_sample.ctypes.data,
            self.time.ctypes.data,
            self.value.ctypes.data,
        )

    @property
    def longest_labels(self) -> int:
        """An upper bound of the size of a series' labels in a message."""
        # Besides its texts, a label takes 4 bytes in a key, and 6 in a message, or up to 12 with long texts.
        return 2 * int(np.diff(self.offsets).max(initial=0))
