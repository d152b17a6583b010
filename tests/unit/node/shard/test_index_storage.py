"""Opening a shard's documents, and when the local copy is used."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pyroaring import BitMap
from structlog.testing import capture_logs

from strandline.clock import ManualClock
from strandline.index.bitmaps import to_bitmap
from strandline.index.local_copy import saved_identity
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.queries import everything
from strandline.index.shard_index import ShardIndex
from strandline.index.vm import start_vm
from strandline.node.shard.index_storage import LuceneStorage, MemoryStorage, OpenedDocuments
from strandline.store.rows import GroupRow, ShardId
from strandline.wire.encoding import Series
from support.manifest_rows import SHARD, row
from support.records import decoded
from support.shard_with_copy import FIRST, POLICY, documents_of

pytestmark = pytest.mark.unit

TOPIC = "topic-1"
GROUP = 1
KEYS = {0: "a", 1: "b"}
LOADED = "local copy not usable, loading the index from the store"
REFRESH_S = 5.0


def storage_in(folder: Path, clock: ManualClock | None = None, retention: int = POLICY.retention) -> LuceneStorage:
    return LuceneStorage(SHARD, folder, retention, 16, REFRESH_S, clock or ManualClock())


def index_row(bucket: int = FIRST, *, superseded: bool = False) -> GroupRow:
    return row(bucket, GROUP, superseded=superseded, index=True)


def row_with_attempt(attempt: str) -> GroupRow:
    """A row whose index bucket was written with this attempt."""
    index_bucket_row = index_row()
    assert index_bucket_row.index is not None
    return replace(index_bucket_row, index=replace(index_bucket_row.index, attempt=attempt))


def filled_index(opened: OpenedDocuments, *names: str) -> ShardIndex:
    """An index over documents that were opened without a copy, with a sample of each of these keys."""
    index = ShardIndex(POLICY, opened.documents, open_bucket=FIRST, next_part_id=0, series_limit=100)
    index.take(decoded(Series([("name", name)], [(FIRST * POLICY.flush_interval, 1.0)]) for name in names))
    return index


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a copy of the first bucket, with two keys, which is not open."""
    start_vm()
    with closing(storage_in(tmp_path / "index")) as storage:
        index = filled_index(storage.open(TOPIC, []), *KEYS.values())
        index.cut()
        storage.save(TOPIC, index.snapshot(), index_row().attempt)
    return tmp_path / "index"


@pytest.fixture(params=["opened at once", "prepared before"])
def storage(folder: Path, request: pytest.FixtureRequest) -> Iterator[LuceneStorage]:
    with closing(storage_in(folder)) as created:
        if request.param == "prepared before":
            created.prepare()
        yield created


def names(storage: LuceneStorage) -> dict[int, str]:
    assert storage.index is not None
    return documents_of(storage.index)


def reason_of_loading(storage: LuceneStorage, topic_id: str, rows: list[GroupRow]) -> str:
    """Why the copy was not used. Checks that the copy was removed."""
    with capture_logs() as lines:
        opened = storage.open(topic_id, rows)
    assert opened.copy is None
    assert names(storage) == {}
    (line,) = [line for line in lines if line["event"] == LOADED]
    assert line["shard"] == "metrics/3"
    return str(line["reason"])


def test_the_copy_that_the_manifest_names_is_used(storage: LuceneStorage) -> None:
    with capture_logs() as lines:
        opened = storage.open(TOPIC, [index_row()])
    assert lines == []
    assert opened.copy is not None
    assert (opened.copy.bucket, opened.copy.next_part_id) == (FIRST, 2)
    assert names(storage) == KEYS
    assert len(opened.documents.fetch(BitMap([0, 1]))) == 2


def test_an_unneeded_prepared_copy_is_released(folder: Path) -> None:
    unopened = storage_in(folder)
    unopened.prepare()
    unopened.close()
    with closing(storage_in(folder)) as storage:
        assert storage.open(TOPIC, [index_row()]).copy is not None


def test_preparing_without_a_copy_does_no_harm(tmp_path: Path) -> None:
    start_vm()
    with closing(storage_in(tmp_path / "new")) as storage:
        storage.prepare()
        assert reason_of_loading(storage, TOPIC, [index_row()]).endswith("there is none")
    with closing(storage_in(tmp_path / "other")) as unopened:
        unopened.prepare()


def test_the_copy_is_used_though_the_manifest_has_older_and_newer_buckets(storage: LuceneStorage) -> None:
    opened = storage.open(TOPIC, [index_row(FIRST + 1), index_row(), index_row(FIRST - 1)])
    assert opened.copy is not None
    assert opened.copy.bucket == FIRST


def test_without_a_copy_all_buckets_are_loaded(tmp_path: Path) -> None:
    start_vm()
    with closing(storage_in(tmp_path / "new")) as storage:
        assert reason_of_loading(storage, TOPIC, [index_row()]).endswith("there is none")


def test_a_copy_under_another_attempt_than_the_manifests_is_not_used(storage: LuceneStorage) -> None:
    reason = reason_of_loading(storage, TOPIC, [row_with_attempt("another-attempt")])
    assert "another-attempt" in reason


def test_a_copy_of_another_topic_is_not_used(storage: LuceneStorage) -> None:
    assert "topic-2" in reason_of_loading(storage, "topic-2", [index_row()])


def test_a_copy_of_a_superseded_bucket_is_not_used(storage: LuceneStorage) -> None:
    reason = reason_of_loading(storage, TOPIC, [index_row(FIRST + 1), index_row(superseded=True)])
    assert f"the manifest does not reference index bucket {FIRST}" in reason


@pytest.mark.parametrize("rows", [[], [FIRST - 1], [FIRST + 1, FIRST + 2]])
def test_a_copy_of_a_bucket_that_the_manifest_does_not_name_is_not_used(
    storage: LuceneStorage, rows: list[int]
) -> None:
    reason = reason_of_loading(storage, TOPIC, [index_row(bucket) for bucket in rows])
    assert f"the manifest does not reference index bucket {FIRST}" in reason


@pytest.mark.parametrize("shard", [replace(SHARD, shard=4), replace(SHARD, dataset="other")])
def test_a_copy_of_another_shard_is_not_used(storage: LuceneStorage, shard: ShardId) -> None:
    storage.shard = shard
    with capture_logs() as lines:
        assert storage.open(TOPIC, [index_row()]).copy is None
    assert [line["event"] for line in lines] == [LOADED]


def test_a_copy_that_was_purged_by_a_shorter_retention_is_not_used(folder: Path) -> None:
    with closing(storage_in(folder, retention=POLICY.retention + 1)) as storage:
        assert "retention" in reason_of_loading(storage, TOPIC, [index_row()])


@pytest.mark.parametrize("pattern", ["columns-*", "lucene/*.si"])
@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_damaged_copy_is_not_used(folder: Path, pattern: str, is_prepared: bool) -> None:
    (path,) = folder.glob(pattern)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x01
    path.write_bytes(content)
    with closing(storage_in(folder)) as storage:
        # Not before the damage: from now on, a thread reads the copy.
        if is_prepared:
            storage.prepare()
        reason_of_loading(storage, TOPIC, [index_row()])
    assert not path.exists(), "an unusable copy is discarded"


def test_a_discarded_copy_makes_room_for_a_new_one(storage: LuceneStorage) -> None:
    index = filled_index(storage.open("topic-2", [index_row()]), "x")
    index.cut()
    storage.save("topic-2", index.snapshot(), "new-attempt")
    storage.close()
    identity = saved_identity(storage.folder)
    assert (identity.dataset, identity.shard, identity.topic_id) == ("metrics", 3, "topic-2")
    assert (identity.bucket, identity.attempt) == (FIRST, "new-attempt")
    opened = storage.open("topic-2", [row_with_attempt("new-attempt")])
    assert opened.copy is not None
    assert names(storage) == {0: "x"}


def test_opening_again_closes_what_was_open(storage: LuceneStorage) -> None:
    storage.open(TOPIC, [index_row()])
    first = storage.index
    storage.open(TOPIC, [index_row()])
    assert storage.index is not first
    assert names(storage) == KEYS


def test_closing_twice_does_nothing_and_releases_the_folder(storage: LuceneStorage) -> None:
    storage.open(TOPIC, [index_row()])
    storage.close()
    storage.close()
    assert storage.index is None
    with closing(storage_in(storage.folder)) as other:
        assert other.open(TOPIC, [index_row()]).copy is not None


def test_an_index_that_is_not_open_is_not_saved(storage: LuceneStorage) -> None:
    opened = storage.open("topic-2", [])
    index = filled_index(opened, "x")
    index.cut()
    snapshot = index.snapshot()
    storage.close()
    with pytest.raises(ValueError, match="the index of metrics/3 is not open"):
        storage.save(TOPIC, snapshot, "attempt")


def test_searches_find_keys_loaded_at_the_start_after_the_bound_without_new_records(folder: Path) -> None:
    clock = ManualClock()
    with closing(storage_in(folder, clock)) as storage:
        filled_index(storage.open("topic-2", []), "x", "y")
        assert storage.index is not None
        clock.sleep(REFRESH_S)
        storage.refresh(changed=False)
        assert storage.index.search(everything()) == BitMap([0, 1])


def test_searches_find_new_keys_after_the_bound_and_not_before(folder: Path) -> None:
    clock = ManualClock()
    with closing(storage_in(folder, clock)) as storage:
        loaded = storage.open("topic-2", [])
        assert storage.index is not None
        index: PartKeyIndex = storage.index
        clock.sleep(REFRESH_S)
        storage.refresh(changed=False)
        filled_index(loaded, "x", "y")
        for _ in range(2):
            clock.sleep(2 * REFRESH_S)
            storage.refresh(changed=False)
            assert len(index.search(everything())) == 0, "no change was announced"
        storage.refresh(changed=True)
        clock.sleep(REFRESH_S / 2)
        storage.refresh(changed=True)
        assert len(index.search(everything())) == 0
        clock.sleep(REFRESH_S / 2)
        storage.refresh(changed=False)
        assert index.search(everything()) == BitMap([0, 1])


def test_a_refresh_of_an_index_that_is_not_open_does_nothing(folder: Path) -> None:
    clock = ManualClock()
    with closing(storage_in(folder, clock)) as storage:
        storage.refresh(changed=True)
        storage.open(TOPIC, [index_row()])
        storage.close()
        for _ in range(2):
            storage.refresh(changed=True)
            clock.sleep(2 * REFRESH_S)


def test_the_index_in_memory_begins_empty_each_time_and_has_no_copy() -> None:
    storage = MemoryStorage()
    index = filled_index(storage.open(TOPIC, [index_row()]), "a")
    index.cut()
    storage.save(TOPIC, index.snapshot(), index_row().attempt)
    storage.refresh(changed=True)
    storage.close()
    opened = storage.open(TOPIC, [index_row()])
    assert opened.copy is None
    assert len(opened.documents.fetch(to_bitmap(index.columns.rows.part_id))) == 0
