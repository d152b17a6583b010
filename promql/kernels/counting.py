"""`count_values`: a hash table of pairs of group and value, and the count of each pair at each step.

"No sample" is recognised by its bits.
"""

import numpy as np
from numba import njit

from strandline.promql.values import NAN_BITS, NO_SAMPLE_BITS

NONE, ANY_NAN = np.int64(NO_SAMPLE_BITS), np.int64(NAN_BITS)
U64 = np.uint64


@njit(cache=True, nogil=True)
def _pair(group, word, slots, pair_groups, pair_bits, pairs):
    """Find the pair of a group and a value's bits. A new pair is added after the existing `pairs`."""
    mask = np.int64(len(slots) - 1)
    mixed = (U64(word) ^ (U64(group) * U64(0x9E3779B97F4A7C15))) * U64(0xC2B2AE3D27D4EB4F)
    slot = np.int64(mixed ^ (mixed >> U64(32))) & mask
    while True:
        pair = slots[slot] - 1
        if pair < 0:
            slots[slot] = pairs + 1
            pair_groups[pairs], pair_bits[pairs] = group, word
            return pairs
        if pair_groups[pair] == group and pair_bits[pair] == word:
            return pair
        slot = (slot + 1) & mask


@njit(cache=True, nogil=True)
def count_values(values, bits, group_of, first, slots, pair_groups, pair_bits, counts, pairs):
    """Count the values of each group at each step. Values are compared by their bits; all NaNs are equal. Stops at a
    row that might need more pairs than there is room for. Returns this row and the number of pairs.
    """
    steps = bits.shape[1]
    row = first
    while row < len(group_of) and pairs + steps <= len(pair_groups):
        for step in range(steps):
            if bits[row, step] == NONE:
                continue
            word = bits[row, step] if values[row, step] == values[row, step] else ANY_NAN
            pair = _pair(group_of[row], word, slots, pair_groups, pair_bits, pairs)
            pairs = max(pairs, pair + 1)
            counts[pair, step] += 1.0
        row += 1
    return row, pairs


@njit(cache=True, nogil=True)
def merge_counts(other_groups, other_bits, other_counts, slots, pair_groups, pair_bits, counts, pairs):
    """Add the counts of other pairs. There has to be room for all of them. Returns the number of pairs."""
    for row in range(len(other_groups)):
        pair = _pair(other_groups[row], other_bits[row], slots, pair_groups, pair_bits, pairs)
        pairs = max(pairs, pair + 1)
        for step in range(counts.shape[1]):
            counts[pair, step] += other_counts[row, step]
    return pairs


@njit(cache=True, nogil=True)
def fill_pairs(slots, pair_groups, pair_bits, pairs):
    """Insert the pairs into a larger, empty hash table."""
    for pair in range(pairs):
        _pair(pair_groups[pair], pair_bits[pair], slots, pair_groups, pair_bits, pair)
