"""The labels of a part key, whose layout is `strandline.index.documents`', as field 1 of a series.

Label { string name = 1; string value = 2; }
"""

import numpy as np
from numba import njit

from strandline.kernels.machine import load_u8, store_u8
from strandline.node.http.remote_read.kernels.words import put_varint, varint_length
from strandline.wire.kernels.split import copy_bytes

U64 = np.uint64
TAG_LABEL, TAG_NAME, TAG_VALUE = np.uint8(0x0A), np.uint8(0x0A), np.uint8(0x12)


@njit(cache=True)
def _text_length(at):
    return np.int64(load_u8(at)) | (np.int64(load_u8(at + 1)) << 8)


@njit(cache=True)
def _field_length(content):
    """The size of a field with a tag of one byte, a length and its content."""
    return 1 + varint_length(U64(content)) + content


@njit(cache=True)
def labels_length(key, end):
    """The size of the labels of the part key between two addresses."""
    total = 0
    while key < end:
        name = _text_length(key)
        value = _text_length(key + 2 + name)
        key += 4 + name + value
        total += _field_length(_field_length(name) + _field_length(value))
    return total


@njit(cache=True)
def put_labels(at, key, end):
    """Write the labels of a part key. Returns the position after them."""
    while key < end:
        name = _text_length(key)
        value = _text_length(key + 2 + name)
        store_u8(at, TAG_LABEL)
        at = put_varint(at + 1, U64(_field_length(name) + _field_length(value)))
        store_u8(at, TAG_NAME)
        at = put_varint(at + 1, U64(name))
        copy_bytes(at, key + 2, name)
        at += name
        store_u8(at, TAG_VALUE)
        at = put_varint(at + 1, U64(value))
        copy_bytes(at, key + 4 + name, value)
        at += value
        key += 4 + name + value
    return at
