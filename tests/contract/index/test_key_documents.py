"""The contract of stores of part keys: Lucene and its in-memory counterpart."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyroaring import BitMap

from strandline.index.documents import PartKeyBatch, encode_part_key
from strandline.index.key_documents import DictDocuments, KeyDocuments, LuceneDocuments
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.vm import start_vm

pytestmark = pytest.mark.contract


@pytest.fixture(params=["lucene", "dict"])
def documents(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeyDocuments]:
    if request.param == "dict":
        yield DictDocuments()
    else:
        start_vm()
        with PartKeyIndex.open(tmp_path / "lucene") as index:
            yield LuceneDocuments(index)


def batch(*part_ids: int) -> PartKeyBatch:
    hashes = [(part_id, 2**64 - 1 - part_id) for part_id in part_ids]
    return PartKeyBatch.of(part_ids, hashes, [encode_part_key({"id": str(part_id)}) for part_id in part_ids])


def fetched(documents: KeyDocuments, *part_ids: int) -> dict[int, tuple[tuple[int, int], bytes]]:
    found = documents.fetch(BitMap(part_ids))
    return {
        part_id: (tuple(found.key_hashes[position].tolist()), found.part_key(position))
        for position, part_id in enumerate(found.part_ids.tolist())
    }


def expected(*part_ids: int) -> dict[int, tuple[tuple[int, int], bytes]]:
    return {part_id: ((part_id, 2**64 - 1 - part_id), encode_part_key({"id": str(part_id)})) for part_id in part_ids}


def test_added_keys_are_fetched_by_id_at_once(documents: KeyDocuments) -> None:
    documents.add(batch(1, 2, 3_000_000_000))
    documents.add(batch(4))
    assert fetched(documents, 1, 4, 3_000_000_000) == expected(1, 4, 3_000_000_000)


def test_unknown_ids_return_no_keys(documents: KeyDocuments) -> None:
    assert fetched(documents) == {}
    assert fetched(documents, 7) == {}
    documents.add(batch(1))
    assert fetched(documents, 7, 1) == expected(1)


def test_deleted_keys_are_not_returned_and_the_others_are(documents: KeyDocuments) -> None:
    documents.add(batch(1, 2, 3))
    documents.delete(BitMap([2, 9]))
    assert fetched(documents, 1, 2, 3) == expected(1, 3)
    documents.add(batch(5))
    assert fetched(documents, 2, 5) == expected(5)
