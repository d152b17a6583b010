"""Where part keys are stored for searching: Lucene in a node, a dictionary in simulations."""

from typing import Protocol

import numpy as np
from pyroaring import BitMap

from strandline.index.documents import PartKeyBatch
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.queries import part_id_in


class KeyDocuments(Protocol):
    """A part key for each part id. A document never changes."""

    def add(self, batch: PartKeyBatch) -> None:
        """Add these keys. Their ids must be new."""
        ...

    def delete(self, part_ids: BitMap) -> None:
        """Delete the keys of these ids, some of which may not exist."""
        ...

    def fetch(self, part_ids: BitMap) -> PartKeyBatch:
        """Return the keys of these ids, in any order; ids without a key are skipped. Includes every add and delete
        before it.
        """
        ...


class LuceneDocuments:
    """Documents of a Lucene index, which queries search."""

    def __init__(self, index: PartKeyIndex) -> None:
        self.index = index

    def add(self, batch: PartKeyBatch) -> None:
        self.index.add(batch)

    def delete(self, part_ids: BitMap) -> None:
        self.index.delete(part_ids)

    def fetch(self, part_ids: BitMap) -> PartKeyBatch:
        self.index.refresh()
        return self.index.part_keys(part_id_in(part_ids))


class DictDocuments:
    """The in-memory counterpart."""

    def __init__(self) -> None:
        self._keys: dict[int, tuple[tuple[int, int], bytes]] = {}

    def add(self, batch: PartKeyBatch) -> None:
        for position, part_id in enumerate(batch.part_ids.tolist()):
            low, high = batch.key_hashes[position].tolist()
            self._keys[part_id] = (low, high), batch.part_key(position)

    def delete(self, part_ids: BitMap) -> None:
        for part_id in part_ids:
            self._keys.pop(part_id, None)

    def fetch(self, part_ids: BitMap) -> PartKeyBatch:
        found = [part_id for part_id in part_ids if part_id in self._keys]
        if not found:
            empty = np.empty((0, 2), dtype=np.uint64)
            return PartKeyBatch(
                np.empty(0, dtype=np.uint32), empty, np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)
            )
        return PartKeyBatch.of(found, [self._keys[one][0] for one in found], [self._keys[one][1] for one in found])
