"""Labels in a message: checked whether they are canonical, or rewritten in canonical form in place.

Canonical means: sorted by name, no duplicate names, no empty values, text in UTF-8, each label in its shortest encoding
with the name before the value. Every ordinary client sends labels like this, so they are normally used in place. Other
labels are sorted and encoded again over the series' own bytes. That always fits, because no other encoding is shorter.
"""

from enum import IntEnum

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u8, load_u64, store_u8
from strandline.wire.kernels.protobuf import (
    compare_bytes,
    is_ascii,
    is_utf8,
    put_varint,
    read_length,
    read_varint,
    skip_field,
    varint_size,
)

TAG_LABEL = 0x0A  # of a series; a label's name has the same tag
TAG_NAME, TAG_VALUE = 0x0A, 0x12
METRIC_NAME = np.uint64(int.from_bytes(b"__name__", "little"))

MAX_LABELS = 256  # Sorting is quadratic; this bounds the cost of a hostile body.
MAX_TEXT = 32_766  # Lucene's longest term: of a name, a value, and of all names of a series with their lengths.


class Verdict(IntEnum):
    """The result of checking a series' labels. Values above `REWRITE` are the reasons why the series is dropped."""

    CANONICAL = 0
    REWRITE = 1
    NO_LABELS = 2
    EMPTY_NAME = 3
    DUPLICATE_NAME = 4
    NOT_UTF8 = 5
    TOO_MANY_LABELS = 6
    NAME_TOO_LONG = 7
    VALUE_TOO_LONG = 8
    MALFORMED = 9  # Not only the series: the whole record can't be decoded.


CANONICAL, REWRITE, NO_LABELS = int(Verdict.CANONICAL), int(Verdict.REWRITE), int(Verdict.NO_LABELS)
EMPTY_NAME, DUPLICATE_NAME, NOT_UTF8 = int(Verdict.EMPTY_NAME), int(Verdict.DUPLICATE_NAME), int(Verdict.NOT_UTF8)
TOO_MANY_LABELS, NAME_TOO_LONG = int(Verdict.TOO_MANY_LABELS), int(Verdict.NAME_TOO_LONG)
VALUE_TOO_LONG, MALFORMED = int(Verdict.VALUE_TOO_LONG), int(Verdict.MALFORMED)


@njit(cache=True)
def scan_canonical(at, end, max_labels, max_name, max_value):
    """Scan labels that are expected to be canonical.

    Returns (verdict, end of the labels, start and length of the metric's name). The verdict is `CANONICAL`, `NOT_UTF8`,
    or `REWRITE`. `REWRITE` only means that the slow path has to read the labels, which may find them malformed.
    """
    start, count, names_length = at, 0, 0
    name, name_length = at, 0
    metric, metric_length = at, 0
    while at + 1 < end and load_u8(at) == TAG_LABEL:
        length = np.int64(load_u8(at + 1))
        at += 2
        if length >= 0x80:
            if at >= end or not 0 < load_u8(at) < 0x80:
                return REWRITE, at, metric, metric_length
            length = (length & 0x7F) | (np.int64(load_u8(at)) << 7)
            at += 1
        label_end = at + length
        # The shortest label has two tags, two lengths, one byte of name and one of value.
        if label_end > end or length < 6 or load_u8(at) != TAG_NAME or load_u8(at + 1) >= 0x80:
            return REWRITE, at, metric, metric_length
        previous, previous_length = name, name_length
        name, name_length = at + 2, np.int64(load_u8(at + 1))
        at = name + name_length
        if at + 2 > label_end or load_u8(at) != TAG_VALUE:
            return REWRITE, at, metric, metric_length
        value_length = np.int64(load_u8(at + 1))
        at += 2
        if value_length >= 0x80:
            if at >= label_end or not 0 < load_u8(at) < 0x80:
                return REWRITE, at, metric, metric_length
            value_length = (value_length & 0x7F) | (np.int64(load_u8(at)) << 7)
            at += 1
        if at + value_length != label_end or value_length == 0 or name_length == 0:
            return REWRITE, at, metric, metric_length
        names_length += name_length + 2
        if name_length > max_name or value_length > max_value or count == max_labels or names_length > MAX_TEXT:
            return REWRITE, at, metric, metric_length
        if count and compare_bytes(previous, previous_length, name, name_length) >= 0:
            return REWRITE, at, metric, metric_length
        if name_length == 8 and load_u64(name) == METRIC_NAME:
            metric, metric_length = at, value_length
        at = label_end
        count += 1
    if count == 0:
        return REWRITE, at, metric, metric_length
    if not is_ascii(start, at - start) and not _texts_are_utf8(start, at):
        return NOT_UTF8, at, metric, metric_length
    return CANONICAL, at, metric, metric_length


@njit(cache=True)
def _texts_are_utf8(at, end):
    """The slow check of labels that are otherwise canonical but not all ASCII. (The high bit of a two-byte length also
    gets here.)
    """
    while at < end:
        _, at = read_length(at + 1, end)
        for _text in range(2):
            length, at = read_length(at + 1, end)
            if not is_utf8(at, length):
                return False
            at += length
    return True


@njit(cache=True)
def collect_labels(at, end, spans, max_labels, max_name, max_value):
    """Find the labels of a series at any position, and sort them by name into rows of `spans`.

    Returns (verdict, number of labels). A row is name start, name length, value start, value length.
    """
    count, names_length, verdict = 0, 0, CANONICAL
    while at < end:
        tag, at = read_varint(at, end)
        if at < 0:
            return MALFORMED, 0
        if tag != TAG_LABEL:
            at = skip_field(tag, at, end)
            if at < 0:
                return MALFORMED, 0
            continue
        length, at = read_length(at, end)
        if at < 0:
            return MALFORMED, 0
        name, name_length, value, value_length, label_end = at, 0, at, 0, at + length
        while at < label_end:
            tag, at = read_varint(at, label_end)
            if at < 0:
                return MALFORMED, 0
            if tag == TAG_NAME or tag == TAG_VALUE:
                text_length, at = read_length(at, label_end)
                if at < 0:
                    return MALFORMED, 0
                if tag == TAG_NAME:
                    name, name_length = at, text_length
                else:
                    value, value_length = at, text_length
                at += text_length
            else:
                at = skip_field(tag, at, label_end)
                if at < 0:
                    return MALFORMED, 0
        # A dropped series is still read to its end, because the rest of it may be malformed.
        if value_length == 0 or verdict != CANONICAL:
            continue
        names_length += name_length + 2
        if name_length == 0:
            verdict = EMPTY_NAME
        elif count == max_labels:
            verdict = TOO_MANY_LABELS
        elif name_length > max_name or names_length > MAX_TEXT:
            verdict = NAME_TOO_LONG
        elif value_length > max_value:
            verdict = VALUE_TOO_LONG
        elif not (is_utf8(name, name_length) and is_utf8(value, value_length)):
            verdict = NOT_UTF8
        else:
            row = count
            while row > 0:
                order = compare_bytes(name, name_length, spans[row - 1, 0], spans[row - 1, 1])
                if order >= 0:
                    break
                spans[row] = spans[row - 1]
                row -= 1
            if row > 0 and order == 0:
                verdict = DUPLICATE_NAME
            else:
                spans[row, 0], spans[row, 1] = name, name_length
                spans[row, 2], spans[row, 3] = value, value_length
                count += 1
    if verdict == CANONICAL and count == 0:
        verdict = NO_LABELS
    return verdict, count


@njit(cache=True)
def _put_text(out, at, tag, start, length):
    out[at] = tag
    at = put_varint(out, at + 1, length)
    for i in range(length):
        out[at + i] = load_u8(start + i)
    return at + length


@njit(cache=True)
def write_canonical(start, spans, count):
    """Write collected labels to `start` in canonical form. Returns (end of the labels, start and length of the metric's
    name).

    This overwrites what was there, so everything else that is needed of the series has to be read before.
    """
    size = 0
    for i in range(count):
        size += spans[i, 1] + spans[i, 3] + 16  # Two tags and two lengths, and the label's own.
    out = np.empty(size, dtype=np.uint8)
    at, metric, metric_length = 0, 0, 0
    for i in range(count):
        name, name_length, value, value_length = spans[i, 0], spans[i, 1], spans[i, 2], spans[i, 3]
        out[at] = TAG_LABEL
        length = 2 + varint_size(name_length) + name_length + varint_size(value_length) + value_length
        at = put_varint(out, at + 1, length)
        at = _put_text(out, at, TAG_NAME, name, name_length)
        if name_length == 8 and load_u64(name) == METRIC_NAME:
            metric, metric_length = at + 1 + varint_size(value_length), value_length
        at = _put_text(out, at, TAG_VALUE, value, value_length)
    for i in range(at):
        store_u8(start + i, out[i])
    return start + at, start + metric, metric_length
