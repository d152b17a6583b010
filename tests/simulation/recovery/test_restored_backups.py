"""Stores that are restored from a backup that was taken while a shard wrote. If the tables are copied in the order of
docs/operations.md, at any two moments, everything is recovered that Kafka still has; in the opposite order, data is
missing.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.node.shard.options import ReplayMode
from strandline.recovery.offset_policy import Accepted, DataLost, LogMismatch
from strandline.recovery.verification.findings import FindingKind
from support.backups import DATA, NAMES, Tables, copied, count_calls, restored, restored_file
from support.rewound_worlds import worlds
from support.shard_world import HOUR, POLICY, World, produce_everywhere
from support.verifying import assert_world_sound, findings_of

pytestmark = pytest.mark.simulation

LONG = replace(POLICY, retention=200 * HOUR)
ACTIONS = ("record", "new key", "hour", "store", "pieces", "crash")


def finish(world: World) -> None:
    """Let a shard replay, read and store everything."""
    for _ in range(30):
        world.work()
        world.pass_time(60_000)
        world.settle()
        if world.is_active() and world.running.is_fully_stored:
            return
    raise AssertionError(f"the shard is still {world.status.phase}")


def live(world: World, action: str, number: int) -> None:
    match action:
        case "record":
            produce_everywhere(world, "always", float(number))
        case "new key":
            produce_everywhere(world, f"key {number}")
        case "hour":
            world.pass_time(HOUR)
            world.read_all()
        case "store":
            world.settle()
        case "pieces":
            for _ in range(5):
                world.running.flusher.step()
        case _:
            world.crash()
            world.start()
            world.work(waves=1)
    world.running.step()


class Backup:
    """Copies the tables that reference data after some calls to the store, and the data after some more."""

    def __init__(self, world: World) -> None:
        """Before the shard's first start."""
        self._world, self._calls = world, count_calls(world)
        self._names: Tables | None = None
        self._data: Tables | None = None
        self._later = 0

    def begin(self, names_at: int, data_later: int) -> None:
        self._later = data_later
        self._calls.after(names_at, self._take_names)

    def _take_names(self) -> None:
        self._names = copied(self._world, NAMES)
        self._calls.after(self._later, self._take_data)

    def _take_data(self) -> None:
        self._data = copied(self._world, DATA)

    def tables(self) -> Tables:
        """The copied tables; those that are not copied yet are copied now."""
        names = self._names or copied(self._world, NAMES)
        return {**names, **(self._data or copied(self._world, DATA))}


@settings(max_examples=40, deadline=None)
@given(
    actions=st.lists(st.sampled_from(ACTIONS), min_size=4, max_size=25),
    names_at=st.integers(1, 80),
    data_later=st.integers(1, 60),
    mode=st.sampled_from([ReplayMode.DIRECT, ReplayMode.SPARK]),
)
def test_a_backup_whose_manifest_is_not_newer_than_its_data_is_consistent(
    actions: list[str], names_at: int, data_later: int, mode: ReplayMode
) -> None:
    with worlds() as make:
        world = make(groups=3, policy=LONG)
        world.replay_by(mode)
        backup = Backup(world)
        world.start()
        backup.begin(names_at, data_later)
        for number, action in enumerate(actions):
            live(world, action, number)
        world.crash()
        again = restored(world, world.options.folder / "restored", backup.tables())
        again.replay_by(mode)
        with closing(again):
            assert_world_sound(again)
            again.start()
            finish(again)
            again.check_all_found()
            produce_everywhere(again, "afterwards")
            again.pass_hours(2)
            again.check_all_found()
            assert_world_sound(again)


def run_hours(world: World, hours: int) -> None:
    if world.shard is None:
        world.start()
    for _ in range(hours):
        produce_everywhere(world, "always", float(world.clock.now_ms()))
        world.pass_hours(1)


def test_a_backup_whose_data_is_older_than_its_manifest_lacks_referenced_data(world: World) -> None:
    run_hours(world, 2)
    data = copied(world, DATA)
    run_hours(world, 1)
    names = copied(world, NAMES)
    world.crash()
    with closing(restored(world, world.options.folder / "restored", {**names, **data})) as again:
        found = {finding.kind for finding in findings_of(again)}
        assert {FindingKind.INDEX_DAMAGED, FindingKind.SEGMENT_MISSING} <= found


def test_a_store_restored_with_a_new_topic_keeps_its_data_once_that_is_accepted(world: World) -> None:
    run_hours(world, 3)
    backup = {**copied(world, NAMES), **copied(world, DATA)}
    before = world.found()
    run_hours(world, 1)
    world.crash()
    world.log.recreate()
    world.produced.clear()
    with closing(restored(world, world.options.folder / "restored", backup)) as again:
        with pytest.raises(LogMismatch, match="is another topic"):
            again.start()
        again.start(accepted=Accepted(another_topic=True))
        produce_everywhere(again, "new")
        again.pass_hours(1)
        found = again.found()
        assert {name: found[name] for name in before} == before
        assert {name for _, name in set(found) - set(before)} == {"new"}
        assert_world_sound(again)


def test_records_deleted_since_the_backup_are_reported_and_may_be_accepted_as_lost(world: World) -> None:
    run_hours(world, 3)
    backup = {**copied(world, NAMES), **copied(world, DATA)}
    run_hours(world, 2)
    world.crash()
    world.log.delete_before(4)
    with closing(restored(world, world.options.folder / "restored", backup)) as again:
        with pytest.raises(DataLost, match="from offset 3 up to 4"):
            again.start()
        again.start(accepted=Accepted(loss_to=4))
        finish(again)
        times = again.found()["metric_0", "always"]
        assert len(times) == 4, "all except the deleted one"
        assert_world_sound(again)


def vacuum_into(connection: sqlite3.Connection, backup: Path) -> None:
    connection.execute(f"VACUUM INTO '{backup}'")


def online_backup(connection: sqlite3.Connection, backup: Path) -> None:
    with closing(sqlite3.connect(backup)) as target:
        connection.backup(target)


@pytest.mark.parametrize("copy", [vacuum_into, online_backup])
@pytest.mark.parametrize("call", [1, 2, 3, 5, 8, 13])
def test_a_copy_of_the_sqlite_file_made_during_writes_is_a_valid_backup(
    make_world: Callable[..., World], copy: Callable[[sqlite3.Connection, Path], None], call: int
) -> None:
    world = make_world()
    calls = count_calls(world)
    run_hours(world, 2)
    backup = world.options.folder / "backup.sqlite"

    def take() -> None:
        with closing(sqlite3.connect(world.options.folder / "store.sqlite")) as connection:
            copy(connection, backup)

    calls.after(call, take)
    run_hours(world, 2)
    world.crash()
    with closing(restored_file(world, world.options.folder / "restored", backup)) as again:
        assert_world_sound(again)
        again.start()
        finish(again)
        again.check_all_found()
        assert_world_sound(again)
