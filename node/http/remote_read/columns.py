"""An answer's columns as the kernels take them."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from strandline.arrays import I64s, U64s
from strandline.index.key_bytes import Bytes
from strandline.node.query.answers import SamplesAnswer

Addresses = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """The arrays of an answer, each in one piece and of the type that the kernels read; values as their bits, so that
    no NaN changes on its way.
    """

    offsets: I64s
    keys: Bytes
    first_sample: I64s
    time: I64s
    value: U64s

    @classmethod
    def of(cls, answer: SamplesAnswer) -> Self:
        """The columns of an answer: views of them, as a rule."""
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
        """Where they lie. Good while these columns are kept."""
        return (
            self.offsets.ctypes.data,
            self.keys.ctypes.data,
            self.first_sample.ctypes.data,
            self.time.ctypes.data,
            self.value.ctypes.data,
        )

    @property
    def longest_labels(self) -> int:
        """No series' labels take more bytes than this in a message."""
        # A label takes 4 bytes beside its texts in a key. In a message it takes 6, or up to 12 where texts are long.
        return 2 * int(np.diff(self.offsets).max(initial=0))
