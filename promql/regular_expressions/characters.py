"""Sets of characters, as ranges of code points, and case folding."""

import unicodedata
from functools import cache
from itertools import groupby

Ranges = tuple[tuple[int, int], ...]
"""Pairs of the first and the last code point, both included. Sorted, and neither overlapping nor adjacent."""

LAST = 0x10FFFF
# The last character with case variants.
_LAST_CASED = 0x1E943
ANY: Ranges = ((0, LAST),)
LINE_FEED: Ranges = ((10, 10),)
DIGITS: Ranges = ((48, 57),)
WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
LETTERS: Ranges = ((65, 90), (97, 122))
POSIX: dict[str, Ranges] = {
    "alnum": (*DIGITS, *LETTERS),
    "alpha": LETTERS,
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": DIGITS,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}


def joined(ranges: list[tuple[int, int]] | Ranges) -> Ranges:
    """Normalise ranges that may be unsorted or overlapping."""
    result: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return tuple(result)


def negated(ranges: Ranges) -> Ranges:
    """All other code points."""
    bounds = [0, *(bound for first, last in ranges for bound in (first, last + 1)), LAST + 1]
    pairs = zip(bounds[::2], bounds[1::2], strict=True)
    return tuple((first, end - 1) for first, end in pairs if first < end)


def in_any_case(ranges: Ranges) -> Ranges:
    """The ranges and all characters that differ from theirs only in case."""
    cases = _cases()
    is_single = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    more = [
        (other, other)
        for character in ((ranges[0][0],) if is_single else cases)
        if any(first <= character <= last for first, last in ranges)
        for other in cases.get(character, ())
    ]
    return joined([*ranges, *more])


@cache
def _cases() -> dict[int, tuple[int, ...]]:
    """For each character with case variants, all of its variants. Simple case folding: one character to one."""
    folded: dict[str, list[int]] = {}
    for code in range(_LAST_CASED + 1):
        character = chr(code)
        fold = character.casefold()
        if len(fold) > 1:
            fold = character.lower()
        folded.setdefault(fold if len(fold) == 1 else character, []).append(code)
    return {code: tuple(codes) for codes in folded.values() if len(codes) > 1 for code in codes}


@cache
def category(name: str) -> Ranges | None:
    """The characters of a Unicode general category (L, Lu); None if the name is unknown."""
    if name == "Any":
        return ANY
    found = tuple(run for kind, run in _categories() if kind.startswith(name)) if 1 <= len(name) <= 2 else ()
    # Python has a category for unassigned code points; Go has none.
    return None if not found or name == "Cn" else joined(found)


@cache
def _categories() -> tuple[tuple[str, tuple[int, int]], ...]:
    runs = []
    for kind, codes in groupby(range(LAST + 1), key=lambda code: unicodedata.category(chr(code))):
        run = list(codes)
        if kind != "Cn":
            runs.append((kind, (run[0], run[-1])))
    return tuple(runs)
