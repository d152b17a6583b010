"""Which key goes with which samples."""

import numpy as np
import pytest

from strandline.index.documents import PartKeyBatch, encode_part_key
from strandline.node.query.sampling import _in_label_order, _keys_of
from strandline.store.series_run import SeriesRun

pytestmark = pytest.mark.unit


class Catalogue:
    """Lucene as it is now: it knows some keys."""

    def __init__(self, *ids: int) -> None:
        keys = [encode_part_key({"id": str(number)}) for number in ids]
        self._batch = PartKeyBatch.of(ids, [(number, number) for number in ids], keys)

    def keys(self, *_: object, **__: object) -> PartKeyBatch:
        return self._batch


class Found:
    part_ids = range(5)


class Never:
    def check(self) -> None:
        pass


def test_samples_stay_with_their_keys_if_lucene_lacks_a_key_or_has_one_without_samples() -> None:
    """Equally many keys as series, and not the same ones."""
    ids = np.array([1, 2, 3, 4], dtype=np.uint32)
    words = ids.astype(np.uint64)
    run = SeriesRun(words, words, words, np.arange(5), np.full(4, 7), ids.astype(np.float64))
    batch = _keys_of(Catalogue(1, 2, 3, 5), Found(), ids, Never())  # type: ignore[arg-type]
    answer = _in_label_order(batch, ids, run, ())
    told = {answer.keys.key(place): answer.value[place] for place in range(len(answer.keys))}
    assert told == {encode_part_key({"id": str(number)}): float(number) for number in (1, 2, 3)}
