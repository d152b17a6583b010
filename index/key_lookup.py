"""Selectors that name values for each of their labels, as the extension's `KeyLookup` takes them: one call of it makes
the query, searches and fetches the keys, while a query that is made here takes several calls for each matcher.

The layout, little endian, one selector behind the other: a u16 with the number of its matchers; for each the label's
length as u16, the label, the number of its values as u16, and for each its length as u16 and the value.
"""

import struct
from collections.abc import Sequence

from strandline.index.documents import sized
from strandline.index.matchers import Matcher, MatchOp
from strandline.index.regular_expressions import literal_list
from strandline.wire.kernels.labels import MAX_TEXT

# Far below the clauses that Lucene takes. Beside the search for more than these it does not matter how they got there.
_MAX_MATCHERS = 64
_MAX_VALUES = 1000
_NUMBER = struct.Struct("<H")


def packed_selectors(selectors: Sequence[Sequence[Matcher]]) -> bytes | None:
    """The selectors packed, if all that they say is that labels have values; None if they say anything else, which is
    for `to_query` then: an empty value, which a missing label has too; no matcher, which every key matches; a text that
    is too long for a key.
    """
    if not 0 < sum(map(len, selectors)) <= _MAX_MATCHERS:
        return None
    parts = []
    for matchers in selectors:
        if not matchers:
            return None
        parts.append(_NUMBER.pack(len(matchers)))
        for matcher in matchers:
            label, values = matcher.label.encode(), _values(matcher)
            if values is None or len(label) > MAX_TEXT:
                return None
            parts += (sized(label), _NUMBER.pack(len(values)))
            for text in values:
                value = text.encode()
                if not 0 < len(value) <= MAX_TEXT:
                    return None
                parts.append(sized(value))
    return b"".join(parts)


def _values(matcher: Matcher) -> Sequence[str] | None:
    """Of which the label has to have one."""
    if matcher.op is MatchOp.EQUAL:
        return (matcher.value,)
    values = literal_list(matcher.value) if matcher.op is MatchOp.MATCH else None
    return values if values is None or len(values) <= _MAX_VALUES else None
