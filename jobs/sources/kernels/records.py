"""Where records of a text begin and end: at newlines, but for those within quotes."""

from numba import njit

NEWLINE = 10


@njit(cache=True)
def skip_records(data, at, wanted, max_record, quote):
    """Walk over whole records from `at` on, where one begins, up to the first that begins at `wanted` or behind it.

    Gives the place where the walk ended: that first record's beginning, or an earlier one's that is longer than
    `max_record` or does not end within `data`.
    """
    begun, in_quotes = at, False
    for i in range(at, len(data)):
        byte = data[i]
        if byte == quote:
            in_quotes = not in_quotes
        elif byte == NEWLINE and not in_quotes:
            if i - begun > max_record:
                return begun
            begun = i + 1
            if begun >= wanted:
                return begun
    return begun


@njit(cache=True)
def find_end(data, in_quotes, quote):
    """The place behind the first newline outside of quotes, or -1; and whether the data ends within quotes."""
    for i in range(len(data)):
        byte = data[i]
        if byte == quote:
            in_quotes = not in_quotes
        elif byte == NEWLINE and not in_quotes:
            return i + 1, in_quotes
    return -1, in_quotes


@njit(cache=True)
def count_bytes(data, wanted):
    """How often a byte occurs."""
    count = 0
    for byte in data:
        count += byte == wanted
    return count
