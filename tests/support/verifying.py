"""Verification in tests: asserts that a store is consistent, and creates stores with exactly one fault."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from strandline.clock import Clock
from strandline.index.bucket_codec import StoredBucket, StoredRecords, decode_bucket, encode_bucket
from strandline.index.documents import PartKeyBatch, decode_part_key
from strandline.index.policy import BucketPolicy
from strandline.index.time_bucket import FrozenBucket
from strandline.recovery.verification.findings import Finding, FindingKind, NoteKind
from strandline.recovery.verification.layout import ShardLayout
from strandline.recovery.verification.shard import Scope, Verification, verify_shard
from strandline.store.protocol import Store
from strandline.store.rows import GroupRow, IndexBucketOf, Lifetime, Segment, SegmentsOf, ShardId
from support.shard_world import Name, World


def verified(
    store: Store, shard: ShardId, groups: int, policy: BucketPolicy, *, clock: Clock, scope: Scope | None = None
) -> Verification:
    """The verification of a shard, which must have a manifest."""
    manifest = store.manifest(shard)
    assert manifest is not None, f"{shard} has no manifest"
    return verify_shard(store, manifest, ShardLayout(shard, groups, policy), clock, scope=scope)


def assert_sound(
    store: Store, shard: ShardId, groups: int, policy: BucketPolicy, *, clock: Clock, scope: Scope | None = None
) -> Verification:
    """Assert that verification finds no fault in a shard's stored data. `policy` is the current one of its owner.

    For simulations and system tests: it only reads the store, so it can be called at any moment, even during a rewind
    or a replay. With `Scope(scratch=...)`, Lucene is checked too; start the JVM first.
    """
    found = verified(store, shard, groups, policy, clock=clock, scope=scope)
    assert not found.findings, "\n".join(f"{finding.kind}: {finding.what}" for finding in found.findings)
    return found


def assert_world_sound(world: World, scope: Scope | None = None) -> Verification:
    """`assert_sound` for a simulated shard."""
    options = world.options
    return assert_sound(world.sqlite, options.shard, options.groups, options.policy, clock=world.clock, scope=scope)


def findings_of(world: World, scope: Scope | None = None) -> tuple[Finding, ...]:
    """The findings in a simulated shard's store."""
    options = world.options
    return verified(
        world.sqlite, options.shard, options.groups, options.policy, clock=world.clock, scope=scope
    ).findings


def only_finding(world: World, kind: FindingKind, scope: Scope | None = None) -> Finding:
    """Assert that this is the only finding, and return it."""
    found = findings_of(world, scope)
    assert [finding.kind for finding in found] == [kind], found
    assert found[0].remedy
    return found[0]


def note_kinds(verification: Verification) -> set[NoteKind]:
    """The kinds of notes."""
    return {note.kind for note in verification.notes}


def copy_of(world: World, folder: Path) -> World:
    """A copy of the world in another folder: with everything that is stored, and without a shard or a log."""
    shutil.copytree(world.options.folder, folder, dirs_exist_ok=True)
    copied = World(folder)
    copied.options = replace(world.options, folder=folder)
    copied.pass_time(world.clock.now_ms() - copied.clock.now_ms())
    return copied


class Damage:
    """Changes one thing in a world's SQLite file, bypassing the store."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._file = world.options.folder / "store.sqlite"

    def execute(self, statement: str, *values: Any) -> None:
        """Run one statement, which must change something."""
        with closing(sqlite3.connect(self._file)) as connection, connection:
            assert connection.execute(statement, values).rowcount > 0

    def row(self, bucket: int, group: int, **columns: object) -> None:
        """Change columns of a group's row."""
        names = ", ".join(f"{name} = ?" for name in columns)
        self.execute(
            f"UPDATE flush_groups SET {names} WHERE bucket = ? AND flush_group = ?",  # noqa: S608 - names of our own
            *columns.values(),
            bucket,
            group,
        )

    def late(self, bucket: int, group: int, *late: tuple[int, int]) -> None:
        """Change a row's late samples."""
        self.row(bucket, group, late=json.dumps(late))

    def segments_of(self, row: GroupRow) -> list[Segment]:
        """The stored segments."""
        where = SegmentsOf(self.world.options.shard, row.bucket, row.group, row.attempt)
        return list(self.world.sqlite.segments(where))

    def index_bucket(self, bucket: int) -> StoredBucket:
        """The stored index bucket."""
        row = self.index_row(bucket)
        assert row.index is not None
        where = IndexBucketOf(self.world.options.shard, bucket, row.index.attempt)
        return decode_bucket(bucket, tuple(self.world.sqlite.index_bucket(where)), row.index.rows, row.index.checksum)

    def index_row(self, bucket: int) -> GroupRow:
        """The row that references an index bucket."""
        (row,) = [row for row in self.world.manifest().groups if row.bucket == bucket and row.index is not None]
        return row

    def rewrite_index(self, bucket: int, change: Callable[["Contents"], None]) -> None:
        """Replace an index bucket by a changed one, with a matching row in the manifest."""
        contents = Contents(self.index_bucket(bucket))
        change(contents)
        row = self.index_row(bucket)
        assert row.index is not None
        encoded = contents.encode()
        self.execute("DELETE FROM index_buckets WHERE bucket = ? AND attempt = ?", bucket, row.index.attempt)
        where = IndexBucketOf(self.world.options.shard, bucket, row.index.attempt)
        self.world.sqlite.write_index_bucket(
            where, encoded.rows, Lifetime.until(row.data_expires, self.world.clock.now_ms())
        )
        self.row(bucket, row.group, index_rows=len(encoded.rows), index_checksum=encoded.checksum)


class Contents:
    """A decoded index bucket that can be changed: records by part id, and the active keys with their greatest times."""

    def __init__(self, stored: StoredBucket) -> None:
        self.bucket = stored.bucket
        self.records: dict[int, Record] = {}
        for part in stored.records:
            for place, part_id in enumerate(part.keys.part_ids.tolist()):
                self.records[part_id] = Record(part, place)
        self.active = dict(zip(stored.active_ids.tolist(), stored.last.tolist(), strict=True))

    def find(self, name: Name) -> int | None:
        """The part id of a key; None if it has no record in the bucket."""
        return next((part_id for part_id, record in self.records.items() if record.name == name), None)

    def id_of(self, name: Name) -> int:
        """The part id of a key."""
        (found,) = [part_id for part_id, record in self.records.items() if record.name == name]
        return found

    def encode(self) -> Any:
        ids = sorted(self.records)
        records = [self.records[part_id] for part_id in ids]
        active = sorted(self.active)
        keys = PartKeyBatch.of(ids, [record.key_hash for record in records], [record.part_key for record in records])
        frozen = FrozenBucket(
            self.bucket,
            np.array(ids, dtype=np.uint32),
            np.array([record.start for record in records], dtype=np.int64),
            np.array([record.end for record in records], dtype=np.int64),
            np.array(active, dtype=np.uint32),
            np.array([self.active[part_id] for part_id in active], dtype=np.int64),
        )
        return encode_bucket(frozen, lambda wanted: keys.take(np.flatnonzero(np.isin(keys.part_ids, wanted))))


class Record:
    """One record of an index bucket."""

    def __init__(self, records: StoredRecords, place: int) -> None:
        low, high = records.keys.key_hashes[place].tolist()
        self.key_hash = (low, high)
        self.part_key = records.keys.part_key(place)
        self.start, self.end = int(records.start[place]), int(records.end[place])

    @property
    def name(self) -> Name:
        labels = decode_part_key(self.part_key)
        return labels["__name__"], labels["name"]


def with_policy(world: World, **changes: int) -> None:
    """Use another policy from the world's next start on."""
    world.options = replace(world.options, policy=replace(world.options.policy, **changes))


def scratch_scope(folder: Path) -> Scope:
    """A scope with a Lucene index in a new folder below this one."""
    made = folder / "scratch"
    made.mkdir()
    return Scope(scratch=made)
