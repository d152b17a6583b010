"""Labels counted over keys at hand: the same as Lucene counts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.index.documents import PartKeyBatch, TermCounts, encode_part_key
from strandline.index.key_labels import names_in, values_in
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.queries import everything
from strandline.index.vm import start_vm

pytestmark = pytest.mark.unit

TEXTS = st.sampled_from(["a", "b", "B", "ab", "é", "\U0001f600", "\uffff", "job"])
KEYS = st.lists(st.dictionaries(TEXTS, TEXTS, min_size=1), max_size=6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    start_vm()
    return tmp_path_factory.mktemp("labels")


def told(counts: TermCounts) -> tuple[list[str], list[int], bool]:
    return counts.terms, counts.counts.tolist(), counts.more


@given(labels=KEYS, label=TEXTS, limit=st.integers(0, 5), number=st.integers(0, 2**62))
def test_names_and_values_are_those_of_lucene(
    folder: Path, labels: list[dict[str, str]], label: str, limit: int, number: int
) -> None:
    keys = [encode_part_key(one) for one in labels]
    batch = PartKeyBatch.of(range(len(keys)), [(i, i) for i in range(len(keys))], keys)
    with PartKeyIndex.open(folder / str(number)) as index:
        index.delete(index.search(everything()))
        index.add(batch)
        index.refresh()
        assert told(names_in(keys, limit=limit)) == told(index.label_names(everything(), limit=limit))
        assert told(values_in(keys, label, limit=limit)) == told(index.label_values(label, everything(), limit=limit))
