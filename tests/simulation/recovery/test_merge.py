"""A start whose replay is done by workers, merged with the records that the shard reads meanwhile.

The result is the same as if the shard had read everything itself, and as if it had never been down.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from strandline.node.shard.options import ReplayMode
from strandline.node.shard.ownership import attempt_prefix
from strandline.node.shard.status import Phase
from strandline.recovery.checkpoints import designated_group
from strandline.recovery.job_board import PlanStopped
from strandline.store.jobs import JobState
from strandline.store.protocol import StoreUnavailable
from support.missed_hours import hours_without_a_shard, recover
from support.shard_world import (
    GRACE,
    HOUR,
    MINUTE,
    StoreCall,
    World,
    group_fails,
    no_fault,
    other_group,
    produce_everywhere,
)

pytestmark = pytest.mark.simulation


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.start()
    return world


def test_a_replay_by_workers_finds_everything(world: World) -> None:
    hours_without_a_shard(world, 2)
    world.settle()
    world.crash()
    hours_without_a_shard(world, 3, name="b")
    world.replay_by(ReplayMode.SPARK)
    world.start()
    assert world.status.phase is Phase.REPLAYING
    assert world.replays.wanted > 0, "workers are needed"
    recover(world)
    world.check_all_found()
    assert not world.sqlite.jobs(world.options.shard), "all rows are committed, so no job is left"


def test_a_shard_is_not_active_before_its_workers_are_done(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 3)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    world.settle()
    world.settle()
    assert world.status.phase is Phase.REPLAYING
    assert world.status.fraction == 0.0
    world.work(waves=1)
    world.settle()
    recover(world)


def test_a_small_lag_is_read_directly_and_a_large_one_by_workers(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 3)
    world.start()
    assert world.replays.wanted == 0
    world.crash()
    world.replay_by(ReplayMode.AUTO)
    world.start()
    assert world.replays.wanted > 0


@pytest.mark.parametrize("missed", [1, 2])
def test_the_tail_is_read_beside_the_replay_and_gives_no_ids_before_it_is_over(world: World, missed: int) -> None:
    """Scenario 24: the tail has a new key first; commit, crash, start without local copy."""
    world.crash()
    hours_without_a_shard(world, missed)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    now = world.clock.now_ms()
    world.produce(("tail", "new", now, 1.0), ("metric_1", "a", now, 2.0))
    world.settle()
    assert world.running.position == len(world.produced), "the tail was read"
    assert len(world.running.index.columns) == 0, "and the columns are unchanged"
    assert world.running.index.next_part_id == 0
    recover(world)
    world.pass_time(HOUR)
    world.settle()
    world.crash()
    world.start()
    recover(world)
    assert world.keys()["tail", "new"][0] == now
    world.check_all_found()


def test_buckets_of_the_tail_that_end_before_the_replay_wait_for_it(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 2)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    for hour in range(3):
        produce_everywhere(world, f"tail-{hour}")
        world.pass_time(HOUR)
        world.settle()
    stored = {row.bucket for row in world.manifest().groups}
    assert not stored, "none of them is stored before its predecessors"
    recover(world)
    world.check_all_found()


def test_keys_equal_those_of_a_shard_that_was_never_down(tmp_path: Path) -> None:
    for folder in ("calm", "restarted"):
        (tmp_path / folder).mkdir()
    calm, world = World(tmp_path / "calm"), World(tmp_path / "restarted")
    world.replay_by(ReplayMode.SPARK)
    for each in (calm, world):
        each.start()
    for hour in range(7):
        for each in (calm, world):
            now = each.clock.now_ms()
            each.produce(("m", f"key-{hour}", now, 1.0), ("n", "always", now, 2.0), ("m", "key-0", now - HOUR, 3.0))
            each.pass_time(HOUR)
        calm.settle()
        if hour in {2, 4}:
            world.crash()
            world.start()
            recover(world, calm)
    for each in (calm, world):
        each.settle()
    recover(world)
    assert world.keys() == calm.keys()
    assert world.found() == calm.found(), "for all unpurged keys"


def test_a_group_that_was_stuck_below_the_indexs_checkpoint_gets_only_its_segments(world: World) -> None:
    """Scenario 1, with workers."""
    produce_everywhere(world)
    stuck = other_group(world)
    world.store.before = group_fails(stuck)
    world.pass_hours(1)
    produce_everywhere(world, "b")
    world.pass_hours(1)
    keys = world.keys()
    before = {(row.bucket, row.group): row for row in world.manifest().groups}
    world.crash()
    world.replay_by(ReplayMode.SPARK)
    world.start()
    jobs = world.sqlite.jobs(world.options.shard)
    assert [(job.groups, job.wants_keys) for job in jobs] == [({stuck}, False)] * 2
    assert world.keys() == keys
    recover(world)
    after = {(row.bucket, row.group): row for row in world.manifest().groups}
    assert {place for place in after if place not in before} == {(job.bucket, stuck) for job in jobs}
    assert all(after[place] == row for place, row in before.items())
    assert world.keys() == keys, "the stored buckets take precedence"
    world.check_all_found()


def test_groups_below_the_checkpoint_that_are_still_replayed_keep_a_shard_from_being_active(world: World) -> None:
    """Scenario 33, with workers."""
    produce_everywhere(world)
    world.store.before = group_fails(other_group(world))
    world.pass_hours(1)
    world.crash()
    world.replay_by(ReplayMode.SPARK)
    world.start()
    world.settle()
    assert world.status.lag == 0, "the tail is caught up"
    assert world.status.phase is Phase.REPLAYING
    world.work()

    def hook(call: StoreCall) -> None:
        if call.name == "commit":
            raise StoreUnavailable("no answer")

    world.store.before = hook
    for _ in range(3):
        world.pass_time(1_000)
        world.settle()
    assert world.status.lag == 0
    assert not world.is_active(), "its rows are not committed"
    world.store.before = no_fault
    world.pass_time(MINUTE)
    recover(world)


def test_a_crash_after_some_jobs_are_done_keeps_them(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 4)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    worker = world.replays.worker(wave_records=1)
    assert worker.step()
    assert worker.step()
    world.crash()
    done = [job for job in world.sqlite.jobs(world.options.shard) if job.state is JobState.DONE]
    assert len(done) == 2
    world.start()
    assert [job for job in world.sqlite.jobs(world.options.shard) if job.state is JobState.DONE] == done
    recover(world)
    named = {(row.bucket, row.attempt) for row in world.manifest().groups}
    assert {(job.bucket, f"{job.plan}.{job.epoch}") for job in done} <= named, "the rows name what they wrote"
    world.check_all_found()


@pytest.mark.parametrize("call", range(40))
def test_a_crash_at_any_call_to_the_store_in_a_recovery_changes_nothing(tmp_path: Path, call: int) -> None:
    class Gone(BaseException):
        pass

    world = World(tmp_path)
    world.start()
    produce_everywhere(world)
    world.pass_hours(1)
    world.crash()
    hours_without_a_shard(world, 2, name="b")
    world.replay_by(ReplayMode.SPARK)
    left = call

    def hook(_call: StoreCall) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Gone

    world.store.before = hook
    try:
        world.start()
        recover(world)
    except Gone:
        world.crash()
    world.store.before = no_fault
    world.start()
    recover(world)
    world.check_all_found()
    assert not world.sqlite.jobs(world.options.shard)


def test_temporarily_unreadable_results_are_read_later(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 2)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    world.work()

    def hook(call: StoreCall) -> None:
        if call.name == "result" and call.arguments[1] == "keys":
            raise StoreUnavailable("no answer")

    world.store.before = hook
    world.settle()
    assert world.status.phase is Phase.REPLAYING
    assert len(world.running.index.columns) == 0, "a bucket counts only once it is complete"
    world.store.before = no_fault
    recover(world)
    world.check_all_found()


def test_a_record_that_can_not_be_decoded_goes_to_the_dead_letters(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 1)
    offset = world.log.append(b"no record", world.clock.now_ms())
    world.pass_time(HOUR)
    produce_everywhere(world)
    world.pass_time(HOUR)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    recover(world)
    assert [letter.offset for letter in world.dead_letters.letters] == [offset]
    assert world.status.counters.dead_letters == 1


def test_a_job_that_fails_permanently_stops_the_shard_with_the_reason(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 3)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    world.log.delete_before(1)
    with pytest.raises(PlanStopped, match=r"offsets \[0, 1\)"):
        recover(world)


def test_a_job_whose_result_is_gone_runs_again(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 2)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    world.work()
    for job in world.sqlite.jobs(world.options.shard):
        # As if it had been done under another lease.
        world.sqlite.replace_job(job, replace(job, epoch=job.epoch + 1))
    recover(world)
    world.check_all_found()


def test_a_tool_that_catches_up_reads_no_tail(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 2)
    produce_everywhere(world, "tail")
    for mode in (ReplayMode.SPARK, ReplayMode.DIRECT):
        world.replay_by(mode)
        world.start(reads_tail=False)
        for _ in range(30):
            world.work()
            world.pass_time(1_000)
            world.running.step()
            world.running.flusher.step()
        assert world.running.is_fully_stored
        assert not world.is_active()
        assert world.status.counters.records == (2 if mode is ReplayMode.SPARK else 0)
        world.running.close()
        world.crash()
    world.start()
    recover(world)
    world.check_all_found()


def test_the_designated_groups_row_names_the_index_bucket_under_the_owners_attempt(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 2)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    recover(world)
    designated = designated_group(world.options.shard, world.options.groups)
    rows = [row for row in world.manifest().groups if row.group == designated and row.segments]
    assert rows
    for row in rows:
        assert row.index is not None
        assert row.index.attempt.startswith(attempt_prefix(world.running.ownership))
        assert not row.attempt.startswith(attempt_prefix(world.running.ownership))


def test_the_rows_of_a_replayed_bucket_are_committed_together(world: World) -> None:
    """After a week of downtime, a node has thousands of rows to commit, at some milliseconds each."""
    world.crash()
    hours_without_a_shard(world, 3)
    world.pass_time(2 * HOUR)
    world.replay_by(ReplayMode.SPARK)
    commits: list[int] = []

    def hook(call: StoreCall) -> None:
        if call.name == "commit" and call.arguments[1].groups:
            commits.append(len(call.arguments[1].groups))

    world.store.after = hook
    world.start()
    recover(world)
    # The group that names the index bucket is committed separately. Three groups have records, two have none.
    assert commits == [world.options.groups - 1, 1] * 5
    world.check_all_found()


def test_the_status_shows_how_long_kafka_keeps_unstored_records(tmp_path: Path) -> None:
    world = World(tmp_path, kafka_retention=10 * HOUR)
    produce_everywhere(world)
    world.pass_time(4 * HOUR)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    world.settle()
    # The first record is 4 h old. Its bucket began 10 minutes earlier, plus a minute of grace.
    assert world.status.time_left == 6 * HOUR - 10 * MINUTE + GRACE
    recover(world)
    assert world.status.time_left is not None
    assert world.status.time_left > 9 * HOUR
