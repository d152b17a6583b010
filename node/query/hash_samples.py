"""Counts the distinct elements of several shards by their hashes: exactly from all hashes, or estimated from a sample.

A sample has the lowest hashes of a shard. Up to the lowest maximum of all samples, every hash of every shard is known.
The share of distinct hashes there estimates the share of all. It is 1 if no shard repeats another.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strandline.arrays import U64s


@dataclass(frozen=True, slots=True)
class HashSample:
    """Hashes of one shard, ascending: all of them, or the lowest ones."""

    hashes: U64s
    is_complete: bool


def lowest(hashes: U64s, limit: int) -> U64s:
    """The lowest hashes, at most `limit`, ascending."""
    if len(hashes) > limit:
        hashes = np.partition(hashes, limit)[:limit]
    return np.sort(hashes)


def distinct_share(samples: Sequence[HashSample]) -> float:
    """The share of distinct elements among the elements of all shards; 1.0 if there are none."""
    bounds = [sample.hashes[-1] for sample in samples if not sample.is_complete and len(sample.hashes)]
    if bounds:
        bound = min(bounds)
        hashes = [sample.hashes[: np.searchsorted(sample.hashes, bound, side="right")] for sample in samples]
    else:
        hashes = [sample.hashes for sample in samples]
    known = np.sort(np.concatenate(hashes))
    return 1.0 if len(known) == 0 else (1 + np.count_nonzero(known[1:] != known[:-1])) / len(known)
