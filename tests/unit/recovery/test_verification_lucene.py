"""Compares Lucene with the store: loaded from the index buckets, and as a shard's local copy."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyroaring import BitMap

from strandline.index.cut_snapshot import CutSnapshot
from strandline.index.documents import PartKeyBatch, encode_part_key
from strandline.index.key_documents import LuceneDocuments
from strandline.index.local_copy import CopyIdentity, open_copy, save_copy, saved_identity
from strandline.index.new_keys import key_hashes
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.vm import start_vm
from strandline.node.shard.index_storage import LuceneStorage
from strandline.node.shard.shard import Shard
from strandline.recovery.checkpoints import EXPIRY_SKEW_MS
from strandline.recovery.verification import shard as engine
from strandline.recovery.verification.documents import ExpectedDocuments, differences
from strandline.recovery.verification.findings import FindingKind, NoteKind
from strandline.recovery.verification.shard import Scope
from support.shard_world import METRICS, StoreCall, World, produce_everywhere
from support.verifying import (
    Damage,
    assert_world_sound,
    copy_of,
    findings_of,
    note_kinds,
    only_finding,
    scratch_scope,
    verified,
)

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module", autouse=True)
def _java() -> None:
    start_vm()


def batch_of(*label_sets: dict[str, str]) -> PartKeyBatch:
    keys = PartKeyBatch.of(range(len(label_sets)), [(0, 0)] * len(label_sets), map(encode_part_key, label_sets))
    low, high = key_hashes(keys.keys, keys.offsets)
    return replace(keys, key_hashes=np.column_stack((low, high)))


def expected_of(batch: PartKeyBatch) -> ExpectedDocuments:
    return ExpectedDocuments(batch.part_ids, batch.key_hashes[:, 0], batch.key_hashes[:, 1])


THREE = batch_of({"__name__": "up", "job": "a"}, {"__name__": "up", "job": "b"}, {"__name__": "up"})


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PartKeyIndex]:
    with PartKeyIndex.open(tmp_path / "index") as opened:
        yield opened


def found_differences(index: PartKeyIndex, batch: PartKeyBatch) -> list[str]:
    index.add(batch)
    index.refresh()
    return list(differences(index, expected_of(THREE)))


def test_documents_that_are_correct(index: PartKeyIndex) -> None:
    assert found_differences(index, THREE) == []


def test_a_document_that_is_missing(index: PartKeyIndex) -> None:
    assert found_differences(index, THREE.part(0, 2)) == ["part ids that are not in Lucene: 1, the first is 2"]


def test_a_surplus_document(index: PartKeyIndex) -> None:
    more = batch_of(*({"n": str(number)} for number in range(4)))
    index.add(more.part(3, 4))
    assert found_differences(index, THREE) == ["part ids that are in Lucene but should not be: 1, the first is 3"]


def test_a_document_that_exists_twice(index: PartKeyIndex) -> None:
    index.add(THREE.part(1, 2))
    assert found_differences(index, THREE) == ["part ids that are in Lucene twice: 1, the first is 1"]


def test_a_document_with_another_hash(index: PartKeyIndex) -> None:
    other = replace(THREE, key_hashes=THREE.key_hashes ^ np.array([[0, 0], [0, 1], [0, 0]], dtype=np.uint64))
    (found,) = found_differences(index, other)
    assert found == "part ids that have a different key hash in Lucene than in the index buckets: 1, the first is 1"


def test_a_document_whose_labels_do_not_match_its_hash(index: PartKeyIndex) -> None:
    swapped = THREE.take(np.array([0, 2, 1]))
    (found,) = found_differences(index, replace(THREE, keys=swapped.keys, offsets=swapped.offsets))
    assert found == "part ids that have labels in Lucene that do not match their hash: 2, the first is 1"


def test_a_document_that_is_not_found_by_its_labels(index: PartKeyIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    found = index.search
    monkeypatch.setattr(index, "search", lambda query: found(query) - BitMap([1]))
    assert found_differences(index, THREE) == ['up{job="b"} (part id 1) is not found by its labels']


@pytest.fixture(scope="module")
def with_copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world whose shard has kept a local copy, and has stopped. Keys have ended, were purged, and have returned."""
    folder = tmp_path_factory.mktemp("world")
    with closing(World(folder)) as world:
        options = world.options
        home = LuceneStorage(options.shard, folder / "index", options.policy.retention, 16, 1.0, world.clock)
        world.shard = Shard.start(world.parts(home), world.status)  # type: ignore[arg-type]  # the real one
        for name in ("returns", *["always"] * 7, "returns"):
            produce_everywhere(world, name)
            produce_everywhere(world, "always")
            world.pass_hours(1)
        world.running.close()
        world.crash()
        yield world


@pytest.fixture
def world(with_copy: World, tmp_path: Path) -> Iterator[World]:
    with closing(copy_of(with_copy, tmp_path)) as copied:
        yield copied


@pytest.fixture
def scope(world: World) -> Scope:
    return Scope(copy=world.options.folder / "index")


def test_index_buckets_lucene_and_bitmaps_agree(world: World, tmp_path: Path) -> None:
    counts = assert_world_sound(world, scratch_scope(tmp_path)).counts
    assert (counts.keys, counts.documents) == (2 * len(METRICS), 2 * len(METRICS))


def test_keys_that_a_start_purges_have_no_document(world: World, tmp_path: Path) -> None:
    retention = 2 * world.options.policy.flush_interval
    world.options = replace(world.options, policy=replace(world.options.policy, retention=retention))
    assert assert_world_sound(world, scratch_scope(tmp_path)).counts.documents == 2 * len(METRICS)
    newest = world.manifest().groups[0].bucket
    damage = Damage(world)
    # As if the keys had not returned: their first ids ended hours ago.
    damage.execute("DELETE FROM flush_groups WHERE bucket = ?", newest)
    assert assert_world_sound(world, Scope(scratch=tmp_path / "scratch" / "2")).counts.documents == len(METRICS)


def test_a_load_that_loses_a_key_is_found(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(LuceneDocuments):
        def add(self, batch: PartKeyBatch) -> None:
            super().add(batch.take(np.flatnonzero(batch.part_ids != 20)))

    monkeypatch.setattr(engine, "LuceneDocuments", Forgetful)
    found = only_finding(world, FindingKind.LUCENE_DIFFERS, scratch_scope(tmp_path))
    assert found.what.endswith(": part ids that are not in Lucene: 1, the first is 20")


def test_a_copy_that_is_correct(world: World, scope: Scope) -> None:
    assert note_kinds(assert_world_sound(world, scope)) == set()


def test_a_missing_copy_is_a_note(world: World, scope: Scope) -> None:
    assert scope.copy is not None
    shutil.rmtree(scope.copy)
    assert note_kinds(assert_world_sound(world, scope)) == {NoteKind.COPY_UNUSED}


def test_a_damaged_copy_is_a_note(world: World, scope: Scope) -> None:
    assert scope.copy is not None
    (columns,) = scope.copy.glob("columns-*")
    columns.write_bytes(columns.read_bytes()[:-1] + b"x")
    found = assert_world_sound(world, scope)
    assert note_kinds(found) == {NoteKind.COPY_UNUSED}
    assert "are damaged" in found.notes[0].what


def test_a_copy_of_a_bucket_that_was_written_again_is_a_note(world: World, scope: Scope) -> None:
    assert scope.copy is not None
    row = Damage(world).index_row(saved_identity(scope.copy).bucket)
    damage = Damage(world)
    assert row.index is not None
    damage.execute("UPDATE index_buckets SET attempt = 'another' WHERE attempt = ?", row.index.attempt)
    damage.row(row.bucket, row.group, index_attempt="another")
    assert note_kinds(assert_world_sound(world, scope)) == {NoteKind.COPY_UNUSED}


def test_a_copy_of_a_bucket_that_was_rewound_is_a_note(world: World, scope: Scope) -> None:
    assert scope.copy is not None
    bucket = saved_identity(scope.copy).bucket
    Damage(world).execute("UPDATE flush_groups SET superseded = 1 WHERE bucket >= ?", bucket)
    assert note_kinds(assert_world_sound(world, scope)) == {NoteKind.COPY_UNUSED, NoteKind.SUPERSEDED}


def test_records_that_have_expired_are_not_a_fault_of_the_copy(world: World, scope: Scope) -> None:
    """Keys that a shard has lost because it was down for too long: its bitmaps contain them, and the copy may too."""
    assert scope.copy is not None
    world.pass_time(until_only_the_copied_bucket_is_left(world, scope))
    assert {finding.kind for finding in findings_of(world, scope)} == {FindingKind.ACTIVE_UNKNOWN}


def test_records_that_expire_while_they_are_read_are_not_a_fault_of_the_copy(world: World, scope: Scope) -> None:
    left = until_only_the_copied_bucket_is_left(world, scope)
    passed = []

    def time_passes(call: StoreCall) -> None:
        if call.name == "index_bucket" and not passed:
            passed.append(left)
            world.pass_time(left)

    world.store.before = time_passes
    options = world.options
    found = verified(world.store, options.shard, options.groups, options.policy, clock=world.clock, scope=scope)
    assert passed
    assert {finding.kind for finding in found.findings} == {FindingKind.ACTIVE_UNKNOWN}


def until_only_the_copied_bucket_is_left(world: World, scope: Scope) -> int:
    """The time until shortly before the bucket of the copy expires."""
    assert scope.copy is not None
    copied = world.rows(saved_identity(scope.copy).bucket)
    return min(row.data_expires for row in copied.values()) - EXPIRY_SKEW_MS - world.clock.now_ms() - 1


def saved_again(folder: Path, change: Callable[[PartKeyIndex, CutSnapshot], CutSnapshot]) -> CopyIdentity:
    """Change a copy but keep its identity."""
    identity = saved_identity(folder)
    index, snapshot = open_copy(folder, identity, 0)
    with index:
        save_copy(folder, index, change(index, snapshot), identity)
    return identity


def test_a_copy_that_lacks_a_live_key(world: World, scope: Scope) -> None:
    def change(_: PartKeyIndex, snapshot: CutSnapshot) -> CutSnapshot:
        return replace(snapshot, keys=snapshot.keys.take(snapshot.keys.part_id != 20))

    assert scope.copy is not None
    identity = saved_again(scope.copy, change)
    found = only_finding(world, FindingKind.COPY_DIFFERS, scope)
    assert found.bucket == identity.bucket
    assert "missing and were live" in found.what
    assert found.what.endswith(": 1, the first is part id 20")


def test_a_copy_with_a_key_under_another_id(world: World, scope: Scope) -> None:
    def change(index: PartKeyIndex, snapshot: CutSnapshot) -> CutSnapshot:
        keys = snapshot.keys.take(slice(None))
        ids = keys.part_id.copy()
        (place,) = np.flatnonzero(ids == ids[-1])
        ids[place] = 999
        documents = LuceneDocuments(index).fetch(BitMap([int(snapshot.keys.part_id[place])]))
        index.delete(BitMap([int(snapshot.keys.part_id[place])]))
        index.add(replace(documents, part_ids=ids[place : place + 1]))
        return replace(snapshot, keys=replace(keys, part_id=ids), next_part_id=1000)

    assert scope.copy is not None
    saved_again(scope.copy, change)
    options = world.options
    found = engine.verify_shard(
        world.sqlite,
        world.manifest(),
        engine.ShardLayout(options.shard, options.groups, options.policy),
        world.clock,
        scope=scope,
    )
    assert {finding.kind for finding in found.findings} == {FindingKind.COPY_DIFFERS}
    assert any(
        "that have no such record" in finding.what and "part id 999" in finding.what for finding in found.findings
    )


def test_a_copy_whose_documents_differ_from_its_columns(world: World, scope: Scope) -> None:
    def change(index: PartKeyIndex, snapshot: CutSnapshot) -> CutSnapshot:
        documents = LuceneDocuments(index).fetch(BitMap([20]))
        index.delete(BitMap([20]))
        index.add(replace(documents, key_hashes=documents.key_hashes ^ np.uint64(1)))
        return snapshot

    assert scope.copy is not None
    saved_again(scope.copy, change)
    assert "a different key hash" in only_finding(world, FindingKind.COPY_DIFFERS, scope).what


def test_a_copy_with_other_active_keys(world: World, scope: Scope) -> None:
    def change(_: PartKeyIndex, snapshot: CutSnapshot) -> CutSnapshot:
        active = dict(snapshot.active)
        active[snapshot.bucket] = active[snapshot.bucket] - BitMap([20])
        return replace(snapshot, active=active)

    assert scope.copy is not None
    saved_again(scope.copy, change)
    assert "active keys of bucket" in only_finding(world, FindingKind.COPY_DIFFERS, scope).what
