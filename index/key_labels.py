"""Counts names and values of labels in Python, for a few part keys."""

from itertools import accumulate

import numpy as np

from strandline.index.documents import KeyList, TermCounts, texts_of_part_key

_U8 = np.dtype("u1")


def names_in(keys: KeyList, *, limit: int) -> TermCounts:
    """Return the names of the keys' labels, under the rules of `PartKeyIndex.label_names`."""
    return _listed([name for part_key in keys.part_keys() for name in texts_of_part_key(part_key)[::2]], limit)


def values_in(keys: KeyList, label: str, *, limit: int) -> TermCounts:
    """Return the values of a label in the keys, under the same rules."""
    name = label.encode()
    found = []
    for part_key in keys.part_keys():
        texts = texts_of_part_key(part_key)
        names = texts[::2]
        if name in names:
            found.append(texts[2 * names.index(name) + 1])
    return _listed(found, limit)


def _listed(terms: list[bytes], limit: int) -> TermCounts:
    # A `Counter` takes longer to construct than a few terms to count.
    counts: dict[bytes, int] = {}
    for term in terms:
        counts[term] = counts.get(term, 0) + 1
    # Sorted by bytes, which is the order of the code points.
    listed = sorted(counts)[:limit]
    # One array for both: creating an array costs more than a few numbers.
    numbers = np.array([0, *accumulate(map(len, listed)), *map(counts.__getitem__, listed)], dtype=np.int64)
    stop = len(listed) + 1
    data = np.frombuffer(b"".join(listed), dtype=_U8)
    return TermCounts(numbers[:stop], data, numbers[stop:], more=len(counts) > limit)
