"""Compiled kernels are read from numba's cache when they are first called, some tens of milliseconds for each. A start
that waits for something else anyway may call them for nothing before.
"""

import numpy as np

from strandline.arrays import U32s, U64s
from strandline.digest import digest
from strandline.index.kernels.key_texts import names_of_key, value_of_key
from strandline.index.kernels.rows import rows_of_ids
from strandline.index.key_table import MISSING, KeyTable


def load_kernels() -> None:
    """Have the kernels at hand that loading an index calls, and the first questions about single keys."""
    words: U64s = np.ones(1, dtype=np.uint64)
    ids: U32s = np.ones(1, dtype=np.uint32)
    digest(np.zeros(1, dtype=np.uint8))
    KeyTable(1).assign(words, words, next_row=0, most=MISSING)
    KeyTable(1).insert(words, words, ids)
    rows_of_ids(ids, ids, np.empty(1, dtype=np.int64))
    # As a search gives them: views of bytes, which can't be written to.
    key = np.frombuffer(bytes(4), dtype=np.uint8)
    names_of_key(key, np.empty(4, dtype=np.uint8), np.empty(1, dtype=np.int64))
    value_of_key(key, key[:0])
