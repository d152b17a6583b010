"""Distinct things of several shards, counted by their hashes: exactly from all hashes, by estimate from a sample.

A sample has the lowest hashes of a shard. Below the least bound of all samples every hash of every shard is known. The
share of distinct ones there is the estimate of the share everywhere; where no shard repeats another, it is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from strandline.arrays import U64s


@dataclass(frozen=True, slots=True)
class HashSample:
    """Hashes of one shard, rising; all of them, or the lowest ones."""

    hashes: U64s
    is_whole: bool


def lowest(hashes: U64s, most: int) -> U64s:
    """The lowest ones, at most so many, rising."""
    if len(hashes) > most:
        hashes = np.partition(hashes, most)[:most]
    return np.sort(hashes)


def distinct_share(samples: Sequence[HashSample]) -> float:
    """How many of all things are distinct, as a share of the sum over the shards; 1.0 if there are none."""
    bounds = [sample.hashes[-1] for sample in samples if not sample.is_whole and len(sample.hashes)]
    if bounds:
        bound = min(bounds)
        hashes = [sample.hashes[: np.searchsorted(sample.hashes, bound, side="right")] for sample in samples]
    else:
        hashes = [sample.hashes for sample in samples]
    known = np.sort(np.concatenate(hashes))
    return 1.0 if len(known) == 0 else (1 + np.count_nonzero(known[1:] != known[:-1])) / len(known)
