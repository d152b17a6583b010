"""Rows that expire during a verification, or are about to, are not a fault."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.node.shard.options import ReplayMode
from strandline.recovery.checkpoints import EXPIRY_SKEW_MS
from strandline.recovery.verification.expiry_horizon import ExpiryHorizon
from strandline.recovery.verification.findings import FindingKind
from support.missed_hours import hours_without_a_shard, recover
from support.shard_world import HOUR, METRICS, POLICY, START, StoreCall, World, produce_everywhere
from support.verifying import Damage, assert_sound, assert_world_sound, findings_of, verified

pytestmark = pytest.mark.unit

FIRST = START // HOUR


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with closing(World(tmp_path)) as made:
        made.start()
        yield made


class _TimedStore:
    """A store with a server, of which only the time is used."""

    def __init__(self, time: int | None) -> None:
        self._time = time

    def server_time(self) -> int | None:
        return self._time


@pytest.mark.parametrize("server", [None, 5_000_000, 900_000_000])
def test_expiry_dates_are_compared_with_the_clock_that_removes_rows(server: int | None) -> None:
    clock = ManualClock(7_000_000)
    expiry = ExpiryHorizon(_TimedStore(server), clock)
    clock.sleep(2.0)
    now = (server or 7_000_000) + 2_000
    assert expiry.may_have_expired(now + EXPIRY_SKEW_MS)
    assert not expiry.may_have_expired(now + EXPIRY_SKEW_MS + 1)


def test_cuts_that_expire_together_in_any_order_are_not_a_gap(world: World) -> None:
    for hour in range(4):
        produce_everywhere(world, f"of hour {hour}")
        world.pass_hours(1)
    date, damage = world.clock.now_ms() + EXPIRY_SKEW_MS, Damage(world)
    for table in ("cuts", "flush_groups"):
        damage.execute(f"UPDATE {table} SET expires = ? WHERE bucket <= ?", date, FIRST + 1)  # noqa: S608
    damage.execute("UPDATE flush_groups SET data_expires = ? WHERE bucket <= ?", date, FIRST + 1)
    damage.execute("DELETE FROM cuts WHERE bucket = ?", FIRST)
    damage.execute("DELETE FROM segments WHERE bucket = ?", FIRST)
    assert_world_sound(world)
    for table in ("cuts", "flush_groups"):
        damage.execute(f"UPDATE {table} SET expires = ? WHERE bucket <= ?", date + 1, FIRST + 1)  # noqa: S608
    assert FindingKind.CUTS_TORN in {finding.kind for finding in findings_of(world)}, "it has not expired yet"


@pytest.fixture
def replayed(world: World) -> World:
    """A world in which one replay has stored several buckets: their data has one date. None of their keys is rolled
    over, because the shard has not run since.
    """
    world.crash()
    hours_without_a_shard(world, 4)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    recover(world)
    world.crash()
    assert len(set(dates(world))) == 1
    return world


def dates(world: World) -> list[int]:
    return [row.data_expires for row in world.manifest().groups]


@pytest.mark.parametrize("bucket", range(FIRST, FIRST + 4))
@pytest.mark.parametrize("kind", ["index_bucket", "segments"])
def test_data_with_one_expiry_date_that_expires_at_any_step_is_not_missed(
    replayed: World, kind: str, bucket: int
) -> None:
    world = replayed
    date = max(dates(world))
    damage, left = Damage(world), []

    def leaves(call: StoreCall) -> None:
        if call.name == kind and call.arguments[0].bucket == bucket and not left:
            left.append(bucket)
            # In any order: rows that were already read may remain for a while.
            world.pass_time(date - EXPIRY_SKEW_MS - world.clock.now_ms())
            for table in ("index_buckets", "segments"):
                damage.execute(f"DELETE FROM {table} WHERE bucket <= ?", bucket)  # noqa: S608

    world.store.before = leaves
    options = world.options
    assert_sound(world.store, options.shard, options.groups, options.policy, clock=world.clock)
    assert left


def test_an_index_bucket_that_is_lost_between_two_reads_is_a_finding(world: World) -> None:
    for _ in range(2):
        produce_everywhere(world)
        world.pass_hours(1)
    world.crash()
    damage, reads = Damage(world), []

    def lost(call: StoreCall) -> None:
        if call.name == "index_bucket" and call.arguments[0].bucket == FIRST:
            reads.append(call)
            if len(reads) == 2:
                damage.execute("DELETE FROM index_buckets WHERE bucket = ?", FIRST)

    world.store.before = lost
    options = world.options
    found = verified(world.store, options.shard, options.groups, options.policy, clock=world.clock)
    assert [(finding.kind, finding.bucket) for finding in found.findings] == [(FindingKind.INDEX_DAMAGED, FIRST)]


def test_a_live_key_without_a_record_is_a_fault_although_the_shard_was_down_for_hours(tmp_path: Path) -> None:
    """The record of a key that was purged may have expired by then, but nothing was purged since."""
    policy = replace(POLICY, retention=2 * HOUR, margin=4 * HOUR)
    with closing(World(tmp_path, groups=1, history=0, policy=policy)) as world:
        world.start()
        for _ in range(10):
            produce_everywhere(world)
            world.pass_hours(1)
        name = (METRICS[0], "a")
        for cut in world.manifest().cuts:
            Damage(world).rewrite_index(cut.bucket, lambda contents: contents.records.pop(contents.find(name), None))
        world.crash()
        world.pass_time(5 * HOUR)
        assert FindingKind.ACTIVE_UNKNOWN in {finding.kind for finding in findings_of(world)}
