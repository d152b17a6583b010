"""The figures of a shard's documents (the age of invisible changes, and the size on disk), and their merging."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.clock import ManualClock, SystemClock, wait_until
from strandline.index.idle_merging import CHECK_INTERVAL_S, MERGE_ABOVE_SEGMENTS, TARGET_SEGMENTS
from strandline.index.local_copy import lucene_folder
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.shard_index import ShardIndex
from strandline.index.vm import start_vm
from strandline.node.shard.index_storage import DISK_USAGE_INTERVAL_S, LuceneStorage, MemoryStorage
from strandline.wire.encoding import Series
from support.lookup_keys import add_keys
from support.manifest_rows import SHARD
from support.records import decoded
from support.shard_with_copy import FIRST, POLICY

pytestmark = pytest.mark.unit

BOUND_S = 5.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def storage(tmp_path: Path, clock: ManualClock) -> Iterator[LuceneStorage]:
    """A storage that is not open yet."""
    start_vm()
    with closing(LuceneStorage(SHARD, tmp_path / "index", POLICY.retention, 16, BOUND_S, clock)) as created:
        yield created


def test_the_lag_is_that_of_the_oldest_change_that_searches_do_not_find(
    storage: LuceneStorage, clock: ManualClock
) -> None:
    assert storage.refresh_lag() == 0.0, "the index is not open yet"
    storage.open("topic-1", [])
    assert storage.refresh_lag() == 0.0
    storage.refresh(changed=True)
    clock.sleep(2)
    storage.refresh(changed=True)
    assert storage.refresh_lag() == pytest.approx(2)
    clock.sleep(BOUND_S)
    storage.refresh(changed=False)
    assert storage.refresh_lag() == 0.0


def test_the_size_on_disk_is_that_of_lucenes_files_some_seconds_ago(storage: LuceneStorage, clock: ManualClock) -> None:
    assert storage.disk_bytes() == 0, "there is no folder yet"
    opened = storage.open("topic-1", [])
    index = ShardIndex(POLICY, opened.documents, open_bucket=FIRST, next_part_id=0, series_limit=1_000)
    index.take(
        decoded(Series([("name", str(number))], [(FIRST * POLICY.flush_interval, 1.0)]) for number in range(500))
    )
    index.cut()
    storage.save("topic-1", index.snapshot(), "attempt")
    files = [file.stat().st_size for file in lucene_folder(storage.folder).iterdir()]
    clock.sleep(DISK_USAGE_INTERVAL_S - 0.1)
    assert storage.disk_bytes() == 0, "reading the sizes of a hundred files for each report would be too expensive"
    clock.sleep(0.1)
    assert storage.disk_bytes() == sum(files) > 1_000


@pytest.fixture
def in_segments(storage: LuceneStorage) -> PartKeyIndex:
    """The index of a storage, with more segments than are left unmerged."""
    storage.open("topic-1", [])
    assert storage.index is not None
    for number in range(MERGE_ABOVE_SEGMENTS + 1):
        add_keys(storage.index, {number: {"n": str(number)}})
    assert storage.index.segments() == MERGE_ABOVE_SEGMENTS + 1
    return storage.index


def test_idle_documents_are_merged(storage: LuceneStorage, clock: ManualClock, in_segments: PartKeyIndex) -> None:
    def are_merged() -> bool:
        clock.sleep(CHECK_INTERVAL_S)
        storage.refresh(changed=False, may_merge=True)
        return in_segments.segments() <= TARGET_SEGMENTS

    for _ in range(3):
        clock.sleep(CHECK_INTERVAL_S)
        storage.refresh(changed=False)
    assert storage._merging is not None
    assert storage._merging._segments_before_merge is None, "merging is not allowed yet"
    assert wait_until(are_merged, timeout=60, clock=SystemClock(), poll=0.01)


def test_documents_are_not_merged_where_that_might_fill_the_disk(
    storage: LuceneStorage, clock: ManualClock, in_segments: PartKeyIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 2 * storage.disk_bytes())
    )
    for _ in range(3):
        clock.sleep(CHECK_INTERVAL_S)
        storage.refresh(changed=False, may_merge=True)
    assert storage._merging is not None
    assert storage._merging._segments_before_merge is None
    assert in_segments.segments() == MERGE_ABOVE_SEGMENTS + 1


def test_an_index_in_memory_has_neither_lag_nor_merges() -> None:
    assert (MemoryStorage().refresh_lag(), MemoryStorage().disk_bytes()) == (0.0, 0)
