"""Vector matching: pairs of matching rows, and steps at which several rows of one group have samples."""

import numpy as np
from numba import njit

from strandline.promql.kernels.no_sample import NO_SAMPLE_BITS


@njit(cache=True, nogil=True)
def steps_with_samples(bits, found):
    """Mark the steps at which any row has a sample."""
    left = bits.shape[1]
    for row in range(bits.shape[0]):
        for step in range(bits.shape[1]):
            if not found[step] and bits[row, step] != NO_SAMPLE_BITS:
                found[step] = True
                left -= 1
        if left == 0:
            break


@njit(cache=True, nogil=True)
def _overlap(one, other):
    for step in range(len(one)):  # noqa: SIM110 - a generator would be compiled, too
        if one[step] != NO_SAMPLE_BITS and other[step] != NO_SAMPLE_BITS:
            return True
    return False


@njit(cache=True, nogil=True)
def pair_rows(many_bits, many_group, one_bits, members, first_member, many_rows, one_rows):
    """Find the pairs of a row of the "many" side and a row of the "one" side in the same group. Returns their number.
    Group g of the "one" side consists of the rows `members[first_member[g] : first_member[g + 1]]`. If it has several,
    for example after a label's value changed, a pair is only included if both rows have a sample at the same step.
    """
    count = 0
    for row in range(len(many_group)):
        start, end = first_member[many_group[row]], first_member[many_group[row] + 1]
        for position in range(start, end):
            if end - start == 1 or _overlap(many_bits[row], one_bits[members[position]]):
                many_rows[count] = row
                one_rows[count] = members[position]
                count += 1
    return count


@njit(cache=True, nogil=True)
def first_conflict(members, first_member, left_bits, left_rows, right_bits, right_rows, counts):
    """The first step at which two members of a group have a sample, and the group; -1 and -1 if there is none. Only
    steps in `counts` are checked. Member i has a sample where rows `left_rows[i]` and `right_rows[i]` both have one.
    """
    steps = left_bits.shape[1]
    seen_by = np.full(steps, -1, dtype=np.int64)
    # Only steps before the first conflict so far are checked.
    limit, found = steps, -1
    for group in range(len(first_member) - 1):
        start, end = first_member[group], first_member[group + 1]
        if end - start < 2:
            continue
        for position in range(start, end):
            left, right = left_bits[left_rows[members[position]]], right_bits[right_rows[members[position]]]
            for step in range(limit):
                if counts[step] and left[step] != NO_SAMPLE_BITS and right[step] != NO_SAMPLE_BITS:
                    if seen_by[step] == group:
                        limit, found = step, group
                        break
                    seen_by[step] = group
    return (limit, found) if found >= 0 else (-1, -1)


@njit(cache=True, nogil=True)
def merge_rows(bits, target_of, out):
    """Copy the samples of each row to row `target_of[row]` of `out`, which is initially without samples."""
    for row in range(bits.shape[0]):
        target = target_of[row]
        for step in range(bits.shape[1]):
            if bits[row, step] != NO_SAMPLE_BITS:
                out[target, step] = bits[row, step]


@njit(cache=True, nogil=True)
def mark_present(bits, group_of, present):
    """Mark the steps at which any row of a group has a sample."""
    for row in range(bits.shape[0]):
        group = group_of[row]
        for step in range(bits.shape[1]):
            if bits[row, step] != NO_SAMPLE_BITS:
                present[group, step] = True


@njit(cache=True, nogil=True)
def filter_rows(bits, group_of, present, is_wanted, out, has_samples):
    """Keep the samples of rows whose group is present at their step or, without `is_wanted`, is not. `has_samples` gets
    whether a row has any sample left.
    """
    for row in range(bits.shape[0]):
        group = group_of[row]
        kept = False
        for step in range(bits.shape[1]):
            if present[group, step] == is_wanted:
                out[row, step] = bits[row, step]
                kept |= bits[row, step] != NO_SAMPLE_BITS
            else:
                out[row, step] = NO_SAMPLE_BITS
        has_samples[row] = kept
