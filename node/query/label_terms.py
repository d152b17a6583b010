"""The values of all labels of a shard, or samples of their hashes, for merging the cardinality of shards."""

from collections.abc import Callable, Sequence

import numpy as np

from strandline.arrays import I64s, U64s
from strandline.index.cardinality import LabelCardinality
from strandline.index.catalogue import CountedKeys
from strandline.index.documents import TermCounts
from strandline.index.key_bytes import Bytes
from strandline.node.query.answers import LabelTerms
from strandline.node.query.hash_samples import lowest
from strandline.node.query.kernels.text_hashes import hash_texts

SAMPLED_HASHES = 1 << 14
"""How many hashes a sample has, for a label whose values are not listed. With 16,384, estimates are within 1 %."""
# What a value takes besides its bytes: an offset and a count.
_TERM_BYTES = 16
_NO_HASHES: U64s = np.zeros(0, dtype=np.uint64)


def list_terms(
    counted: CountedKeys, labels: Sequence[LabelCardinality], max_bytes: int, step: Callable[[], None]
) -> LabelTerms:
    """The values of labels. The smallest labels are listed while they fit into `max_bytes`, the others are sampled.

    `step` is called between labels, and can end the work by raising.
    """
    listed = _fitting(labels, max_bytes)
    terms, hashes = list[TermCounts](), list[U64s]()
    n_terms, n_hashes = list[int](), list[int]()
    for label in labels:
        step()
        found, sampled = counted.values(label.name), _NO_HASHES
        if label.name in listed:
            terms.append(found)
        else:
            sampled = lowest(text_hashes(found.data, found.offsets.astype(np.int64)), SAMPLED_HASHES)
            hashes.append(sampled)
        n_terms.append(len(found.counts) if label.name in listed else 0)
        n_hashes.append(len(sampled))
    return LabelTerms(
        _ends(n_terms),
        _joined_offsets(terms),
        np.concatenate([np.zeros(0, dtype=np.uint8), *(one.data for one in terms)]),
        np.concatenate([np.zeros(0, dtype=np.int64), *(one.counts.astype(np.int64) for one in terms)]),
        _ends(n_hashes),
        np.concatenate([_NO_HASHES, *hashes]),
    )


def text_hashes(data: Bytes, offsets: I64s) -> U64s:
    """The hash of each text."""
    out = np.empty(len(offsets) - 1, dtype=np.uint64)
    hash_texts(data, offsets, out)
    return out


def _fitting(labels: Sequence[LabelCardinality], max_bytes: int) -> set[str]:
    remaining, fitting = max_bytes, set()
    for label in sorted(labels, key=_listed_bytes):
        remaining -= _listed_bytes(label)
        if remaining < 0:
            break
        fitting.add(label.name)
    return fitting


def _listed_bytes(label: LabelCardinality) -> int:
    return label.value_bytes + _TERM_BYTES * label.values


def _ends(counts: Sequence[int]) -> I64s:
    return np.cumsum([0, *counts], dtype=np.int64)


def _joined_offsets(terms: Sequence[TermCounts]) -> I64s:
    begins = _ends([len(one.data) for one in terms])
    ends = [one.offsets[1:].astype(np.int64) + begin for one, begin in zip(terms, begins, strict=False)]
    return np.concatenate([np.zeros(1, dtype=np.int64), *ends])
