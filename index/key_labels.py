"""Names and values of labels, counted over part keys that lie here: for a handful, one by one."""

from itertools import accumulate

import numpy as np

from strandline.arrays import I64s
from strandline.index.documents import FewKeys, MalformedBatch, TermCounts, texts_of_part_key
from strandline.index.kernels.key_texts import names_of_key, value_of_key

_U8 = np.dtype("u1")
# Two lengths.
_LEAST_LABEL = 4


def names_in(keys: FewKeys, *, limit: int) -> TermCounts:
    """The names of the keys' labels, under the rules of `PartKeyIndex.label_names`."""
    if len(keys) == 1:
        return _names_of(keys, limit)
    return _listed([name for part_key in keys.part_keys() for name in texts_of_part_key(part_key)[::2]], limit)


def values_in(keys: FewKeys, label: str, *, limit: int) -> TermCounts:
    """The values that a label has in the keys, under the same rules."""
    name = label.encode()
    if len(keys) == 1:
        return _value_of(keys, name, limit)
    found = []
    for part_key in keys.part_keys():
        texts = texts_of_part_key(part_key)
        names = texts[::2]
        if name in names:
            found.append(texts[2 * names.index(name) + 1])
    return _listed(found, limit)


def _names_of(one: FewKeys, limit: int) -> TermCounts:
    """The names of one key, which stand there in order, each once: most questions are about one key."""
    key = one.keys
    names = np.empty(len(key), dtype=np.uint8)
    offsets = np.zeros(1 + len(key) // _LEAST_LABEL, dtype=np.int64)
    count = names_of_key(key, names, offsets[1:])
    if count < 0:
        raise MalformedBatch("a part key is cut off")
    listed = min(count, limit)
    return TermCounts(offsets[: listed + 1], names[: offsets.item(listed)], _once(listed), more=count > limit)


def _value_of(one: FewKeys, name: bytes, limit: int) -> TermCounts:
    start, end = value_of_key(one.keys, np.frombuffer(name, _U8))
    if start < 0:
        raise MalformedBatch("a part key is cut off")
    value = one.keys[start:end]
    if not end or limit < 1:
        return _listed([value.tobytes()] if end else [], limit)
    return TermCounts(np.array((0, len(value))), value, _once(1), more=False)


def _once(terms: int) -> I64s:
    counts = np.empty(terms, dtype=np.int64)
    counts.fill(1)
    return counts


def _listed(terms: list[bytes], limit: int) -> TermCounts:
    # No `Counter`, which takes longer to be made than a handful to be counted.
    counts: dict[bytes, int] = {}
    for term in terms:
        counts[term] = counts.get(term, 0) + 1
    # By their bytes, which is the order of their code points.
    listed = sorted(counts)[:limit]
    # One array for both: to make one costs more than a handful of numbers.
    numbers = np.array([0, *accumulate(map(len, listed)), *map(counts.__getitem__, listed)], dtype=np.int64)
    behind = len(listed) + 1
    data = np.frombuffer(b"".join(listed), dtype=_U8)
    return TermCounts(numbers[:behind], data, numbers[behind:], more=len(counts) > limit)
