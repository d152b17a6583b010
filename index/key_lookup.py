"""Packs selectors that only list values of labels for the extension's `KeyLookup`. It makes the query, searches and
fetches the keys in one call, while a query that is made in Python takes several calls per matcher.

The layout, little endian, one selector after the other: a u16 with the number of its matchers; for each the label's
length as u16, the label, the number of its values as u16, and for each its length as u16 and the value.
"""

import struct
from collections.abc import Sequence

from strandline.index.documents import sized
from strandline.index.matchers import Matcher, MatchOp
from strandline.index.regular_expressions import literal_list
from strandline.wire.kernels.labels import MAX_TEXT

# Far below Lucene's limit on clauses. Larger searches are slow enough that the calls don't matter.
_MAX_MATCHERS = 64
_MAX_VALUES = 1000
_NUMBER = struct.Struct("<H")


def packed_selectors(selectors: Sequence[Sequence[Matcher]]) -> bytes | None:
    """Return the packed selectors, if they only require labels to have certain values. Otherwise None, and `to_query`
    is used: for an empty value, which a missing label has too; for no matcher, which matches every key; and for a text
    that is too long for a key.
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
    """Return the values of which the label must have one."""
    if matcher.op is MatchOp.EQUAL:
        return (matcher.value,)
    values = literal_list(matcher.value) if matcher.op is MatchOp.MATCH else None
    return values if values is None or len(values) <= _MAX_VALUES else None
