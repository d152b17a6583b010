"""Compares Lucene with the index buckets: the same ids and keys, each of which is found by its labels.

Every active id has a record, and every record that counts has a document, so the bitmaps are consistent with Lucene
too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.arrays import U32s, U64s
from strandline.index.bitmaps import to_bitmap
from strandline.index.documents import PartKeyBatch, decode_part_key
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene import queries
from strandline.recovery.verification.findings import with_first
from strandline.recovery.verification.index_buckets import differing_hashes, labels_of, malformed_keys

# How many keys are read from Lucene at a time, and how many are searched by their labels.
KEYS_PER_READ, KEYS_SEARCHED = 65_536, 100


@dataclass(frozen=True, slots=True)
class ExpectedDocuments:
    """Part ids in ascending order, and the key hash of each."""

    part_ids: U32s
    key_low: U64s
    key_high: U64s


def differences(index: PartKeyIndex, expected: ExpectedDocuments) -> Sequence[str]:
    """How the documents of an index differ from the expected ones, as text; empty if they do not."""
    found = _ids_and_hashes(index)
    if faults := _compare_columns(found, expected):
        return faults
    for first in range(0, len(expected.part_ids), KEYS_PER_READ):
        keys = index.part_keys(queries.part_id_in(to_bitmap(expected.part_ids[first : first + KEYS_PER_READ])))
        if faults := _compare_keys(keys):
            return faults
    return list(_not_found_by_labels(index, expected))


def _ids_and_hashes(index: PartKeyIndex) -> ExpectedDocuments:
    parts = list(index.ids_and_hashes())
    ids = np.concatenate([np.empty(0, dtype=np.uint32), *(part[0] for part in parts)])
    hashes = np.concatenate([np.empty((0, 2), dtype=np.uint64), *(part[1] for part in parts)])
    order = np.argsort(ids, kind="stable")
    return ExpectedDocuments(ids[order], hashes[order, 0], hashes[order, 1])


def _compare_columns(found: ExpectedDocuments, expected: ExpectedDocuments) -> Sequence[str]:
    faults = []
    there, wanted = to_bitmap(found.part_ids), to_bitmap(expected.part_ids)
    for what, extra in (
        ("are not in Lucene", wanted - there),
        ("are in Lucene but should not be", there - wanted),
        ("are in Lucene twice", to_bitmap(found.part_ids[1:][found.part_ids[1:] == found.part_ids[:-1]])),
    ):
        if len(extra):
            faults.append(with_first(f"part ids that {what}", len(extra), extra[0]))
    if faults:
        return faults
    differ = (found.key_low != expected.key_low) | (found.key_high != expected.key_high)
    return _describe(differ, found.part_ids, "have a different key hash in Lucene than in the index buckets")


def _compare_keys(keys: PartKeyBatch) -> Sequence[str]:
    malformed = malformed_keys(keys)
    if malformed.any():
        return _describe(malformed, keys.part_ids, "have labels in Lucene that are not in canonical form")
    return _describe(differing_hashes(keys), keys.part_ids, "have labels in Lucene that do not match their hash")


def _describe(which: npt.NDArray[np.bool_], part_ids: U32s, what: str) -> Sequence[str]:
    number = int(np.count_nonzero(which))
    return [with_first(f"part ids that {what}", number, part_ids[np.argmax(which)])] if number else []


def _not_found_by_labels(index: PartKeyIndex, expected: ExpectedDocuments) -> Sequence[str]:
    """Evenly spaced keys that a search by their labels does not find."""
    number = len(expected.part_ids)
    if number == 0:
        return []
    positions = np.unique(np.linspace(0, number - 1, min(number, KEYS_SEARCHED)).astype(np.int64))
    keys = index.part_keys(queries.part_id_in(to_bitmap(expected.part_ids[positions])))
    faults = []
    for position, part_id in enumerate(keys.part_ids.tolist()):
        labels = decode_part_key(keys.part_key(position))
        query = queries.all_of([queries.label_is(name, value) for name, value in labels.items()])
        if part_id not in index.search(query):
            faults.append(f"{labels_of(keys, position)} (part id {part_id}) is not found by its labels")
    return faults
