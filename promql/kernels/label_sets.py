"""Kernels over label sets in the layout of part keys: selecting labels, finding distinct label sets, reading and
setting one label.

All keys are valid: labels are sorted by name, without duplicates. Names to be found are sorted, too, so that one pass
over a key finds all of them.
"""

import numpy as np
from numba import njit

from strandline.index.kernels.key_order import compare_texts
from strandline.kernels.machine import load_u8, load_u64, store_u8, store_u64
from strandline.kernels.xxh3 import hash_at


@njit(cache=True, nogil=True, inline="always")
def _length(at):
    return np.int64(load_u8(at)) | np.int64(load_u8(at + 1)) << 8


@njit(cache=True, nogil=True)
def _copy(source, length, target):
    """Copy bytes from one address to another. Returns the address after the copy."""
    at = 0
    while at + 8 <= length:
        store_u64(target + at, load_u64(source + at))
        at += 8
    while at < length:
        store_u8(target + at, load_u8(source + at))
        at += 1
    return target + length


@njit(cache=True, nogil=True)
def _same(one, other, length):
    at = 0
    while at + 8 <= length:
        if load_u64(one + at) != load_u64(other + at):
            return False
        at += 8
    while at < length:
        if load_u8(one + at) != load_u8(other + at):
            return False
        at += 1
    return True


@njit(cache=True, nogil=True)
def _copy_labels(at, end, names, name_offsets, is_without, target):
    """Copy the labels of the key from `at` to `end` that have one of the names, or with `is_without` all others.
    Returns the address after the copy. Adjacent labels are copied at once.
    """
    count = len(name_offsets) - 1
    name = 0
    run = at
    while at < end:
        if name == count:
            # No further name can match.
            if is_without:
                return _copy(run, end - run, target)
            break
        length = _length(at)
        label_end = at + 2 + length
        label_end += 2 + _length(label_end)
        order = -1
        while name < count:
            order = compare_texts(
                at + 2, length, names + name_offsets[name], name_offsets[name + 1] - name_offsets[name]
            )
            if order <= 0:
                break
            name += 1
        if (order == 0) == is_without:
            target = _copy(run, at - run, target)
            run = label_end
        at = label_end
    return _copy(run, at - run, target) if run < at else target


@njit(cache=True, nogil=True)
def select_labels(data, offsets, names, name_offsets, is_without, out, out_offsets):
    """Write the selected labels of each key to `out`, consecutively. They are never longer than the key."""
    base, names_at, target = data.ctypes.data, names.ctypes.data, out.ctypes.data
    start = target
    out_offsets[0] = 0
    for key in range(len(offsets) - 1):
        target = _copy_labels(base + offsets[key], base + offsets[key + 1], names_at, name_offsets, is_without, target)
        out_offsets[key + 1] = target - start


@njit(cache=True, nogil=True)
def _find_text(slots, mask, hashes, word, texts, begins, ends, start, length):
    """The slot of the text at `start` with this hash, or the free slot for it. The texts in the table are from
    `texts + begins[i]` up to `texts + ends[i]`. Arrays are passed as addresses: numba counts references for arrays in
    arguments, which would take as long as the search.
    """
    slot = np.int64(word) & mask
    while True:
        entry = 8 * (np.int64(load_u64(slots + 8 * slot)) - 1)
        if entry < 0:
            return slot
        if load_u64(hashes + entry) == word:
            begin = np.int64(load_u64(begins + entry))
            if np.int64(load_u64(ends + entry)) - begin == length and _same(texts + begin, start, length):
                return slot
        slot = (slot + 1) & mask


@njit(cache=True, nogil=True)
def find_groups(
    data, offsets, names, name_offsets, is_without, slots, hashes, group_offsets, group_data, count, group_of
):
    """Find the group of each key by its selected labels. New groups are added after the existing `count`. `slots` is a
    hash table (group + 1, 0 if free) with at least twice as many slots, and `group_data` has room for all keys. Returns
    the new number of groups.
    """
    base, names_at, groups_at = data.ctypes.data, names.ctypes.data, group_data.ctypes.data
    mask, slots_at, hashes_at = np.int64(len(slots) - 1), slots.ctypes.data, hashes.ctypes.data
    begins = group_offsets.ctypes.data
    for key in range(len(offsets) - 1):
        start = groups_at + group_offsets[count]
        end = _copy_labels(base + offsets[key], base + offsets[key + 1], names_at, name_offsets, is_without, start)
        length = end - start
        word = hash_at(start, length)[0]
        slot = _find_text(slots_at, mask, hashes_at, word, groups_at, begins, begins + 8, start, length)
        if not slots[slot]:
            hashes[count] = word
            count += 1
            group_offsets[count] = end - groups_at
            slots[slot] = count
        group_of[key] = slots[slot] - 1
    return count


@njit(cache=True, nogil=True)
def find_distinct(data, offsets, slots, hashes, first_of, group_of):
    """Number distinct texts: a number for each text, and for each number the position of its first text."""
    base = data.ctypes.data
    mask, slots_at, hashes_at = np.int64(len(slots) - 1), slots.ctypes.data, hashes.ctypes.data
    begins, ends = np.empty_like(offsets), np.empty_like(offsets)
    begins_at, ends_at = begins.ctypes.data, ends.ctypes.data
    count = 0
    for text in range(len(offsets) - 1):
        start, length = base + offsets[text], offsets[text + 1] - offsets[text]
        word = hash_at(start, length)[0]
        slot = _find_text(slots_at, mask, hashes_at, word, base, begins_at, ends_at, start, length)
        if not slots[slot]:
            begins[count], ends[count] = offsets[text], offsets[text + 1]
            hashes[count], first_of[count] = word, text
            count += 1
            slots[slot] = count
        group_of[text] = slots[slot] - 1
    return count


@njit(cache=True, nogil=True)
def fill_slots(slots, hashes, count):
    """Insert the groups into a larger, empty hash table."""
    mask = np.int64(len(slots) - 1)
    for group in range(count):
        slot = np.int64(hashes[group]) & mask
        while slots[slot]:
            slot = (slot + 1) & mask
        slots[slot] = group + 1


@njit(cache=True, nogil=True)
def find_values(data, offsets, name, starts, ends):
    """Find the value of one label in `data` for each key; from 0 to 0 where a key lacks the label."""
    base, name_at = data.ctypes.data, name.ctypes.data
    for key in range(len(offsets) - 1):
        at, end = base + offsets[key], base + offsets[key + 1]
        starts[key] = ends[key] = 0
        while at < end:
            length = _length(at)
            value = at + 2 + length
            label_end = value + 2 + _length(value)
            order = compare_texts(at + 2, length, name_at, len(name))
            if order == 0:
                starts[key], ends[key] = value + 2 - base, label_end - base
            if order >= 0:
                break
            at = label_end


@njit(cache=True, nogil=True)
def _put_text(source, length, target):
    store_u8(target, np.uint8(length & 0xFF))
    store_u8(target + 1, np.uint8(length >> 8))
    return _copy(source, length, target + 2)


@njit(cache=True, nogil=True)
def set_label(data, offsets, name, values, value_offsets, value_of, out, out_offsets):
    """Write each key with one label set to the value number `value_of[key]`, or without the label if the value is
    empty. A key whose `value_of` is negative is copied unchanged.
    """
    base, name_at, values_at, target = data.ctypes.data, name.ctypes.data, values.ctypes.data, out.ctypes.data
    out_start = target
    out_offsets[0] = 0
    for key in range(len(offsets) - 1):
        start, end = base + offsets[key], base + offsets[key + 1]
        value = value_of[key]
        if value < 0:
            target = _copy(start, end - start, target)
            out_offsets[key + 1] = target - out_start
            continue
        # The label is, or has to be inserted, from `at` up to `label_end`.
        at = label_end = start
        while at < end:
            length = _length(at)
            label_end = at + 2 + length
            label_end += 2 + _length(label_end)
            order = compare_texts(at + 2, length, name_at, len(name))
            if order == 0:
                break
            if order > 0:
                label_end = at
                break
            at = label_end
        target = _copy(start, at - start, target)
        value_length = value_offsets[value + 1] - value_offsets[value]
        if value_length:
            target = _put_text(name_at, len(name), target)
            target = _put_text(values_at + value_offsets[value], value_length, target)
        target = _copy(label_end, end - label_end, target)
        out_offsets[key + 1] = target - out_start


@njit(cache=True, nogil=True)
def join_texts(separator, data, starts, ends, out, out_offsets):
    """Join the texts `data[starts[column, row] : ends[column, row]]` of all columns of each row."""
    base, separator_at, target = data.ctypes.data, separator.ctypes.data, out.ctypes.data
    out_start = target
    out_offsets[0] = 0
    for row in range(starts.shape[1]):
        for column in range(starts.shape[0]):
            if column:
                target = _copy(separator_at, len(separator), target)
            target = _copy(base + starts[column, row], ends[column, row] - starts[column, row], target)
        out_offsets[row + 1] = target - out_start
