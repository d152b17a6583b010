"""Measures the growth of the key table: how long ingestion pauses when the table is copied into a larger one."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from strandline.arrays import U64s
from strandline.index.key_table import KeyTable

KEYS_A_BATCH = 20_000
BOUND_MS_A_MILLION_KEYS = 50.0
_WARM_UP_KEYS = 5_000


@dataclass(frozen=True, slots=True)
class TableGrowth:
    """The longest pause: its wall time and CPU time in milliseconds, and the number of keys after it.

    A pause is the duration of a call that grows the table, including its lookups and new keys. If `cpu_ms` is much
    less than `pause_ms`, other processes used the machine.
    """

    growths: int
    keys: int
    pause_ms: float
    cpu_ms: float
    pause_ms_a_million_keys: float
    bound_ms_a_million_keys: float


def grow_table(keys: int, *, clock: Callable[[], float] = time.perf_counter) -> TableGrowth:
    """Grow an empty table to this number of keys, in batches as in ingestion. `clock` returns seconds."""
    rng = np.random.default_rng(7)
    table = KeyTable()
    # Compiles or loads the kernels.
    table.assign(*_random_keys(rng, _WARM_UP_KEYS), next_row=0, max_keys=_WARM_UP_KEYS)
    table = KeyTable()
    growths, longest = 0, (0.0, 0.0, 1)
    while len(table) < keys:
        low, high = _random_keys(rng, min(KEYS_A_BATCH, keys - len(table)))
        size_before = table.nbytes
        began, cpu_began = clock(), time.thread_time()
        table.assign(low, high, next_row=len(table), max_keys=keys)
        pause, cpu = clock() - began, time.thread_time() - cpu_began
        if table.nbytes > size_before:
            growths += 1
            longest = max(longest, (pause * 1000, cpu * 1000, len(table)))
    pause_ms, cpu_ms, keys_then = longest
    return TableGrowth(growths, keys_then, pause_ms, cpu_ms, pause_ms * 1_000_000 / keys_then, BOUND_MS_A_MILLION_KEYS)


def _random_keys(rng: np.random.Generator, count: int) -> tuple[U64s, U64s]:
    return rng.integers(0, 2**64, count, dtype=np.uint64), rng.integers(0, 2**64, count, dtype=np.uint64)
