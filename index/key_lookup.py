"""Selectors that name the value of each of their labels, as the extension's `KeyLookup` takes them: one call of it
makes the query, searches and fetches the keys, while a query that is made here takes several calls for each matcher.

The layout, little endian, one selector behind the other: a u16 with the number of its matchers; for each the label's
length as u16, the label, the value's length as u16, the value.
"""

import struct
from collections.abc import Sequence

from strandline.index.matchers import Matcher, MatchOp
from strandline.wire.kernels.labels import MAX_TEXT

# Far below the clauses that Lucene takes. Beside the search for more than these it does not matter how they got there.
_MOST_MATCHERS = 64
_COUNT = struct.Struct("<H")


def packed_selectors(selectors: Sequence[Sequence[Matcher]]) -> bytes | None:
    """The selectors packed, if all that they say is that labels have values; None if they say anything else, which is
    for `to_query` then: an empty value, which a missing label has too; no matcher, which every key matches; a text that
    is too long for a key.
    """
    if not 0 < sum(map(len, selectors)) <= _MOST_MATCHERS:
        return None
    parts = []
    for matchers in selectors:
        if not matchers:
            return None
        parts.append(_COUNT.pack(len(matchers)))
        for matcher in matchers:
            label, value = matcher.label.encode(), matcher.value.encode()
            if matcher.op is not MatchOp.EQUAL or not value or len(value) > MAX_TEXT or len(label) > MAX_TEXT:
                return None
            parts += (_COUNT.pack(len(label)), label, _COUNT.pack(len(value)), value)
    return b"".join(parts)
