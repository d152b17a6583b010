"""Finds the boundaries of records: newlines outside of quotes."""

from numba import njit

NEWLINE = 10


@njit(cache=True)
def skip_records(data, at, wanted, max_record, quote):
    """Skip complete records from `at`, where one begins, to the first that begins at or after `wanted`.

    Returns the start of that record, or of an earlier one that is longer than `max_record` or does not end within
    `data`.
    """
    start, in_quotes = at, False
    for i in range(at, len(data)):
        byte = data[i]
        if byte == quote:
            in_quotes = not in_quotes
        elif byte == NEWLINE and not in_quotes:
            if i - start > max_record:
                return start
            start = i + 1
            if start >= wanted:
                return start
    return start


@njit(cache=True)
def find_end(data, in_quotes, quote):
    """The position after the first newline outside of quotes, or -1; and whether the data ends within quotes."""
    for i in range(len(data)):
        byte = data[i]
        if byte == quote:
            in_quotes = not in_quotes
        elif byte == NEWLINE and not in_quotes:
            return i + 1, in_quotes
    return -1, in_quotes


@njit(cache=True)
def count_bytes(data, wanted):
    """The number of occurrences of a byte."""
    count = 0
    for byte in data:
        count += byte == wanted
    return count
