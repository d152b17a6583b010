"""The head line of a request for a look-up, read straight into the question that goes to the shards.

One selector that names values of labels, times in whole seconds, a number of results: that is what most clients send.
What is read here the general way reads the same, and takes many times as long. Whatever else there is, and whatever is
wrong, is left to that.
"""

import numpy as np
from numba import njit

from strandline.node.http.times import EARLIEST_MS, LATEST_MS

SERIES, NAMES, VALUES = 0, 1, 2
# The prefix of a frame and the numbers of a question, as `strandline.node.query.plain_lookups` has them.
PREFIX, QUESTION = 16, 39
# A matcher takes two bytes more than the shortest that says the same, so that a question fits into twice its request.
ROOM = 2
MOST_DIGITS, MOST_MATCHERS, MOST_RESULTS = 12, 64, 2**31 - 1
SPACE, QUOTE, HASH, PERCENT, AMPERSAND, PLUS, COMMA = 32, 34, 35, 37, 38, 43, 44
COLON, EQUALS, UNDERSCORE, BACKSLASH, OPEN, CLOSE = 58, 61, 95, 92, 123, 125


def _bytes(text):
    return np.frombuffer(text, dtype=np.uint8)


MAGIC = _bytes(b"SLP1")
BASE, LINE_END = _bytes(b"GET /api/v1/"), _bytes(b" HTTP/1.1\r\n")
PATH_SERIES, PATH_NAMES, PATH_LABEL, PATH_VALUES = (
    _bytes(text) for text in (b"series?", b"labels?", b"label/", b"/values?")
)
MATCH, OPEN_LIST, CLOSE_LIST = _bytes(b"match"), _bytes(b"[%5B%5b"), _bytes(b"]%5D%5d")
START, END, LIMIT = _bytes(b"start="), _bytes(b"end="), _bytes(b"limit=")
METRIC_NAME, ESCAPED_NAME = _bytes(b"__name__"), _bytes(b"U__")
# What PromQL reads as an operator or a number where a metric's name could stand, in any case of its letters.
NO_METRIC_NAMES = _bytes(b"|atan2|bool|group_left|group_right|ignoring|inf|nan|on|")


@njit(cache=True, nogil=True)
def _begins(data, at, end, text):
    """Whether a text stands at a place."""
    if end - at < len(text):
        return False
    same = True
    for place in range(len(text)):
        same = same and data[at + place] == text[place]
    return same


@njit(cache=True, nogil=True)
def _is_letter(one):
    return 97 <= one <= 122 or 65 <= one <= 90 or one == UNDERSCORE


@njit(cache=True, nogil=True)
def _is_digit(one):
    return 48 <= one <= 57


@njit(cache=True, nogil=True)
def _hex(one):
    if _is_digit(one):
        return one - 48
    if 97 <= one <= 102:
        return one - 87
    return one - 55 if 65 <= one <= 70 else -1


@njit(cache=True, nogil=True)
def _character(data, at, end):
    """The character of a parameter's value at a place, and the place behind it; -1 at the value's end, and for one that
    is not printable ASCII or has to be looked at twice.
    """
    one = np.int64(data[at]) if at < end else SPACE
    if one == PERCENT:
        high = _hex(np.int64(data[at + 1])) if at + 2 < end else -1
        low = _hex(np.int64(data[at + 2])) if at + 2 < end else -1
        one = 16 * high + low if high >= 0 and low >= 0 else 0
        return (one if 32 <= one < 127 else -1), at + 3
    if one <= SPACE or one >= 127 or one in (HASH, AMPERSAND, PLUS):
        return -1, at
    return one, at + 1


@njit(cache=True, nogil=True)
def _put_u16(out, at, number):
    out[at] = number & 0xFF
    out[at + 1] = number >> 8


@njit(cache=True, nogil=True)
def _put_i64(out, at, number):
    for place in range(8):
        out[at + place] = (number >> (8 * place)) & 0xFF


@njit(cache=True, nogil=True)
def _is_reserved(out, start, end):
    """Whether a name is one of those that no metric has."""
    for at in range(len(NO_METRIC_NAMES) - (end - start) - 1):
        if NO_METRIC_NAMES[at] != 124 or NO_METRIC_NAMES[at + 1 + end - start] != 124:
            continue
        same = True
        for place in range(end - start):
            one = out[start + place]
            lower = one + 32 if 65 <= one <= 90 else one
            same = same and NO_METRIC_NAMES[at + 1 + place] == lower
        if same:
            return True
    return False


@njit(cache=True, nogil=True)
def _put_name(data, at, end, out, to, colons):
    """Copy a name behind its length: the places behind it in both, the first of them -1 if there is none."""
    start = to + 2
    to = start
    one, behind = _character(data, at, end)
    while one >= 0 and (_is_letter(one) or (colons and one == COLON) or (to > start and _is_digit(one))):
        out[to] = one
        to += 1
        at = behind
        one, behind = _character(data, at, end)
    _put_u16(out, start - 2, to - start)
    return (at if to > start else -1), to


@njit(cache=True, nogil=True)
def _put_value(data, at, end, out, to):
    """Copy what stands between quotes behind `=`, as the one value of a label, as `_put_name` does it."""
    equals, at = _character(data, at, end)
    quote, at = _character(data, at, end)
    if equals != EQUALS or quote != QUOTE:
        return -1, to
    _put_u16(out, to, 1)
    start = to + 4
    to = start
    one, at = _character(data, at, end)
    while one not in (-1, QUOTE, BACKSLASH):
        out[to] = one
        to += 1
        one, at = _character(data, at, end)
    _put_u16(out, start - 2, to - start)
    return (at if one == QUOTE and to > start else -1), to


@njit(cache=True, nogil=True)
def _put_selector(data, at, end, out, to):
    """Copy a selector that names a value for each of its labels."""
    count_at = to
    to += 2
    matchers = 0
    one, behind = _character(data, at, end)
    if one < 0:
        return -1, to
    has_name = one != OPEN
    if has_name:
        name_end = to + 2 + len(METRIC_NAME)
        _put_u16(out, to, len(METRIC_NAME))
        out[to + 2 : name_end] = METRIC_NAME
        _put_u16(out, name_end, 1)
        at, to = _put_name(data, at, end, out, name_end + 2, True)
        if at < 0 or _is_reserved(out, name_end + 4, to):
            return -1, to
        matchers = 1
        one, behind = _character(data, at, end)
    if one == OPEN:
        at, separator = behind, COMMA
        while separator == COMMA:
            one, behind = _character(data, at, end)
            if one == CLOSE and matchers > has_name:
                # Behind the last comma.
                separator, at = one, behind
                break
            name = to + 2
            at, to = _put_name(data, at, end, out, to, False)
            if at < 0 or (has_name and to - name == len(METRIC_NAME) and _begins(out, name, to, METRIC_NAME)):
                return -1, to
            at, to = _put_value(data, at, end, out, to)
            if at < 0 or matchers == MOST_MATCHERS:
                return -1, to
            matchers += 1
            separator, at = _character(data, at, end)
        if separator != CLOSE:
            return -1, to
    _put_u16(out, count_at, matchers)
    return (at if matchers else -1), to


@njit(cache=True, nogil=True)
def _number(data, at, end):
    """A number in digits, and the place behind it; that is -1 if there is none, or one with too many."""
    start, number = at, 0
    while at < end and _is_digit(data[at]):
        if at - start == MOST_DIGITS:
            return 0, -1
        number = 10 * number + np.int64(data[at]) - 48
        at += 1
    return number, (at if at > start else -1)


@njit(cache=True, nogil=True)
def _bracket(data, at, end, forms):
    """The place behind a bracket, as it is or escaped; -1 if there is none."""
    if at < end and data[at] == forms[0]:
        return at + 1
    if _begins(data, at, end, forms[1:4]) or _begins(data, at, end, forms[4:7]):
        return at + 3
    return -1


@njit(cache=True, nogil=True)
def _selector_at(data, at, end):
    """The place behind the name of the parameter for selectors, and its `=`; -1 if it is another one."""
    if not _begins(data, at, end, MATCH):
        return -1
    at = _bracket(data, at + len(MATCH), end, OPEN_LIST)
    at = _bracket(data, at, end, CLOSE_LIST) if at >= 0 else -1
    return at + 1 if 0 <= at < end and data[at] == EQUALS else -1


@njit(cache=True, nogil=True)
def _kind(data, at, end):
    """What is asked for, and the places behind the path, and around the label in it."""
    if _begins(data, at, end, PATH_SERIES):
        return SERIES, at + len(PATH_SERIES), at, at
    if _begins(data, at, end, PATH_NAMES):
        return NAMES, at + len(PATH_NAMES), at, at
    if not _begins(data, at, end, PATH_LABEL):
        return -1, at, at, at
    start = at + len(PATH_LABEL)
    at = start
    while at < end and (_is_letter(data[at]) or _is_digit(data[at]) or data[at] in (COLON, 45, 46)):
        at += 1
    if at == start or not _begins(data, at, end, PATH_VALUES) or _begins(data, start, end, ESCAPED_NAME):
        return -1, at, at, at
    return VALUES, at + len(PATH_VALUES), start, at


@njit(cache=True, nogil=True)
def read_lookup(data, end, most, out):
    """Read the head line of a request, which ends before a place at the latest, and write the question, of at most so
    many results, into an array with `ROOM` for it: the place behind the line, that behind the question, what is asked
    for, and how many results. All are 0 if it is another request.
    """
    if not _begins(data, 0, end, BASE):
        return 0, 0, 0, 0
    kind, at, label, label_end = _kind(data, len(BASE), end)
    if kind < 0:
        return 0, 0, 0, 0
    out[QUESTION : QUESTION + label_end - label] = data[label:label_end]
    selectors = QUESTION + label_end - label
    to = selectors
    start = stop = limit = -1
    while True:
        value = _selector_at(data, at, end)
        if value >= 0 and to == selectors:
            at, to = _put_selector(data, value, end, out, to)
        elif start < 0 and _begins(data, at, end, START):
            start, at = _number(data, at + len(START), end)
        elif stop < 0 and _begins(data, at, end, END):
            stop, at = _number(data, at + len(END), end)
        elif limit < 0 and _begins(data, at, end, LIMIT):
            limit, at = _number(data, at + len(LIMIT), end)
        else:
            at = -1
        if at < 0 or at >= end:
            return 0, 0, 0, 0
        if data[at] != AMPERSAND:
            break
        at += 1
    if to == selectors or not _begins(data, at, end, LINE_END):
        return 0, 0, 0, 0
    # Where the first time lies behind the last one, all times are meant.
    first, last = 1, 0
    if start >= 0 or stop >= 0:
        first = 1000 * start if start >= 0 else EARLIEST_MS
        last = 1000 * stop if stop >= 0 else LATEST_MS
        if last < first:
            return 0, 0, 0, 0
    out[:4] = MAGIC
    out[4:QUESTION] = 0
    _put_i64(out, 8, to - PREFIX)
    out[PREFIX] = kind
    _put_i64(out, PREFIX + 1, first)
    _put_i64(out, PREFIX + 9, last)
    wanted = min(min(limit, most) if limit > 0 else most, MOST_RESULTS)
    for place in range(4):
        out[PREFIX + 17 + place] = (wanted >> (8 * place)) & 0xFF
    _put_u16(out, PREFIX + 21, label_end - label)
    return at + len(LINE_END), to, kind, wanted
