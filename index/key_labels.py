"""Names and values of labels, counted over part keys that lie here: for a handful, one by one."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from strandline.index.documents import PartKeyBatch, TermCounts, decode_part_key


def names_in(keys: PartKeyBatch, *, limit: int) -> TermCounts:
    """The names of the keys' labels, under the rules of `PartKeyIndex.label_names`."""
    return _listed((name for place in range(len(keys)) for name in decode_part_key(keys.part_key(place))), limit)


def values_in(keys: PartKeyBatch, label: str, *, limit: int) -> TermCounts:
    """The values that a label has in the keys, under the same rules."""
    values = (decode_part_key(keys.part_key(place)).get(label) for place in range(len(keys)))
    return _listed((value for value in values if value is not None), limit)


def _listed(terms: Iterable[str], limit: int) -> TermCounts:
    # By their bytes, which is the order of their code points.
    counts = sorted((term.encode(), count) for term, count in Counter(terms).items())
    listed = counts[:limit]
    return TermCounts(
        np.cumsum([0, *(len(term) for term, _ in listed)], dtype=np.uint32),
        np.frombuffer(b"".join(term for term, _ in listed), dtype=np.uint8),
        np.array([count for _, count in listed], dtype=np.uint32),
        more=len(counts) > limit,
    )
