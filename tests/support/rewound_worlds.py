"""Worlds for tests of rewinds and hours: in memory, rewound like `strandline offsets rewind` does it, and each with an
identical world that is not rewound.
"""

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from strandline.index.bucket_codec import decode_bucket
from strandline.index.documents import decode_part_key
from strandline.node.shard.ownership import take_shard
from strandline.recovery.cutting import Cutting
from strandline.recovery.offset_policy import LogState
from strandline.recovery.rewinding import RewindPlan, Target, plan_rewind, rewind
from strandline.store.rows import GroupRow, IndexBucketOf, Lifetime, ManifestRows, Ownership
from support.shard_world import HOUR, MINUTE, Name, World, produce_everywhere

# A simulation commits thousands of times, and simulates no power failures, so memory serves as the disk.
MEMORY = Path("/dev/shm")


@contextmanager
def worlds() -> Iterator[Callable[..., World]]:
    """Creates worlds with some options changed."""
    root = Path(tempfile.mkdtemp(prefix="strandline-", dir=MEMORY if MEMORY.is_dir() else None))
    numbers = itertools.count()
    try:
        with ExitStack() as opened:

            def make(**changes: Any) -> World:
                home = root / str(next(numbers))
                home.mkdir()
                return opened.enter_context(closing(World(home, **changes)))

            yield make
    finally:
        shutil.rmtree(root)


def cutting_of(world: World) -> Cutting:
    return Cutting(world.options.policy.flush_interval, world.options.grace)


def log_now(world: World) -> LogState:
    ends = world.log.ends()
    return LogState(world.log.topic_id(), ends.start, ends.last_stable)


def rewind_world(world: World, target: Target, *, take: bool = False, most_rows: int = 1_000) -> RewindPlan:
    """Rewind the world's shard, which must not have a running owner."""

    def plan_of(manifest: ManifestRows) -> RewindPlan:
        return plan_rewind(
            world.options.shard,
            manifest,
            target,
            log_now(world),
            groups=world.options.groups,
            cutting=cutting_of(world),
            most_rows=most_rows,
        )

    process = world.machine.process()

    def taken() -> Ownership:
        return take_shard(world.store, world.options.shard, world.log.topic_id(), world.clock, process, by_force=take)

    try:
        return rewind(world.store, taken, plan_of, world.clock, world.parts().present)
    finally:
        process.kill()


def stop_shard(world: World) -> None:
    """Stop the shard as a stopping node does."""
    world.running.close()
    world.crash()


def check_stored_exactly_once(world: World) -> None:
    """Check that every sample is there exactly once, and that keys and part ids correspond one to one."""
    world.settle()
    world.check_all_found()
    ids = world.running.index.columns.rows
    present = ids.part_id[ids.present()].tolist()
    assert len(present) == len(set(present)) == len(world.keys())
    assert max(present, default=-1) < world.running.index.next_part_id


def superseded(world: World) -> set[int]:
    """The buckets with superseded rows."""
    return {row.bucket for row in world.manifest().groups if row.superseded}


def ids(world: World) -> dict[int, tuple[int, int]]:
    """The key hash of each part id."""
    keys = world.running.index.columns.rows
    keys = keys.take(keys.present())
    hashes = zip(keys.key_low.tolist(), keys.key_high.tolist(), strict=True)
    return dict(zip(keys.part_id.tolist(), hashes, strict=True))


def buckets_with(world: World, key: Name) -> set[int]:
    """The unexpired index buckets with a key's record."""
    now = world.clock.now_ms()
    rows = [row for row in world.manifest().groups if row.index is not None and row.data_expires > now]
    return {row.bucket for row in rows if key in _names_in(world, row)}


def let_expire(world: World, bucket: int) -> None:
    """Let the store delete an expired index bucket, as it does during writes."""
    shard = world.options.shard
    (index,) = (row.index for row in world.rows(bucket).values() if row.index is not None)
    where = IndexBucketOf(shard, bucket, index.attempt)
    while list(world.sqlite.index_bucket(where)):
        world.pass_time(2 * MINUTE)
        lifetime = Lifetime(HOUR, world.clock.now_ms() + HOUR)
        world.sqlite.write_index_bucket(IndexBucketOf(shard, bucket, "unreferenced"), [b""], lifetime)


def _names_in(world: World, row: GroupRow) -> set[Name]:
    assert row.index is not None
    where = IndexBucketOf(world.options.shard, row.bucket, row.index.attempt)
    stored = decode_bucket(row.bucket, tuple(world.sqlite.index_bucket(where)), row.index.rows, row.index.checksum)
    keys = [
        decode_part_key(records.keys.part_key(place))
        for records in stored.records
        for place in range(len(records.keys))
    ]
    return {(labels["__name__"], labels["name"]) for labels in keys}


def world_with_history(world: World, hours: int = 5) -> World:
    """A world after this many hours, each with its own key that ends, and one key that stays. Its shard is stopped."""
    world.start()
    for hour in range(hours):
        produce_everywhere(world, f"hour {hour}")
        produce_everywhere(world, "always", float(hour))
        world.pass_hours(1)
    stop_shard(world)
    return world
