"""The assignment of samples to keys."""

import numpy as np
import pytest

from strandline.index.documents import PartKeyBatch, encode_part_key
from strandline.node.query.sampling import _in_label_order, _keys_of
from strandline.store.series_run import SeriesRun

pytestmark = pytest.mark.unit


class FakeCatalogue:
    """A catalogue that has only some of the keys."""

    def __init__(self, *ids: int) -> None:
        keys = [encode_part_key({"id": str(number)}) for number in ids]
        self._batch = PartKeyBatch.of(ids, [(number, number) for number in ids], keys)

    def keys(self, *_: object, **__: object) -> PartKeyBatch:
        return self._batch


class FakeLookup:
    part_ids = range(5)


class NeverCancelled:
    def check(self) -> None:
        pass


def test_samples_stay_with_their_keys_if_lucene_lacks_a_key_or_has_one_without_samples() -> None:
    """There are as many keys as series, but not the same ones."""
    ids = np.array([1, 2, 3, 4], dtype=np.uint32)
    words = ids.astype(np.uint64)
    run = SeriesRun(words, words, words, np.arange(5), np.full(4, 7), ids.astype(np.float64))
    batch = _keys_of(FakeCatalogue(1, 2, 3, 5), FakeLookup(), ids, NeverCancelled())  # type: ignore[arg-type]
    answer = _in_label_order(batch, ids, run, ())
    values = {answer.keys.key(place): answer.value[place] for place in range(len(answer.keys))}
    assert values == {encode_part_key({"id": str(number)}): float(number) for number in (1, 2, 3)}
