"""Faults between the end of a replay job and the merge of its result into the shard, and their consequences."""

from dataclasses import replace
from pathlib import Path

import pytest

from strandline.node.shard.log import TopicUnfit
from strandline.node.shard.options import ReplayMode
from strandline.recovery.checkpoints import designated_group
from strandline.recovery.job_board import PlanStopped
from strandline.recovery.offset_policy import Accepted, DataLost
from strandline.recovery.replay.job_result import KEYS, RESULT, SUMMARY, attempt_of
from strandline.store.jobs import JobResultOf, JobState
from strandline.store.protocol import StoreUnavailable
from strandline.store.rows import Lifetime
from support.missed_hours import hours_without_a_shard, recover
from support.shard_world import (
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


def test_an_index_bucket_that_can_not_be_written_delays_no_other_group(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 1)
    world.replay_by(ReplayMode.SPARK)

    def hook(call: StoreCall) -> None:
        if call.name == "write_index_bucket":
            raise StoreUnavailable("no answer")

    world.start()
    world.work()
    world.store.before = hook
    world.pass_time(1_000)
    world.settle()
    designated = designated_group(world.options.shard, world.options.groups)
    stored = {row.group for row in world.manifest().groups}
    assert stored == set(range(world.options.groups)) - {designated}
    world.store.before = no_fault
    world.pass_time(MINUTE)
    recover(world)
    world.check_all_found()


def test_a_job_stays_until_every_row_of_its_bucket_is_committed(world: World) -> None:
    """Its result may be the only copy: once a job is done, Kafka may delete the records that it has read."""
    world.crash()
    hours_without_a_shard(world, 2)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    world.work()
    jobs = world.sqlite.jobs(world.options.shard)
    assert len(jobs) == 2

    def hook(call: StoreCall) -> None:
        if call.name == "commit":
            raise StoreUnavailable("no answer")

    world.store.before = hook
    for _ in range(3):
        world.pass_time(1_000)
        world.settle()
    assert world.running.flusher.closed_buckets(), "they are merged, and not committed"
    assert world.sqlite.jobs(world.options.shard) == jobs
    world.store.before = no_fault
    world.pass_time(MINUTE)
    recover(world)
    world.pass_time(1_000)
    world.settle()
    assert not world.sqlite.jobs(world.options.shard)


def test_a_retried_merge_sends_no_dead_letter_twice(world: World) -> None:
    world.crash()
    offset = world.log.append(b"no record", world.clock.now_ms())
    hours_without_a_shard(world, 1)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    world.work()

    def hook(call: StoreCall) -> None:
        if call.name == "result" and call.arguments[1] == SUMMARY:
            raise StoreUnavailable("no answer")

    world.store.before = hook
    for _ in range(3):
        world.pass_time(1_000)
        world.settle()
    world.store.before = no_fault
    recover(world)
    assert [letter.offset for letter in world.dead_letters.letters] == [offset]
    assert world.status.counters.dead_letters == 1


def damage_results(world: World, kind: str) -> None:
    """Flip a byte in the results of the jobs."""
    for job in world.sqlite.jobs(world.options.shard):
        where = JobResultOf(job.shard, job.bucket, attempt_of(job))
        rows = [
            replace(row, data=row.data[:-1] + bytes([row.data[-1] ^ 1])) for row in world.sqlite.result(where, kind)
        ]
        world.sqlite.write_result(where, rows, Lifetime.from_present(world.clock.now_ms(), HOUR))


@pytest.mark.parametrize("kind", [RESULT, SUMMARY, KEYS])
def test_a_job_whose_result_is_damaged_runs_again(world: World, kind: str) -> None:
    world.crash()
    hours_without_a_shard(world, 2)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    world.work()
    damage_results(world, kind)
    recover(world)
    world.check_all_found()
    assert not world.sqlite.jobs(world.options.shard)


@pytest.mark.parametrize("allowed", [0, 3])
def test_a_job_whose_result_is_damaged_more_often_than_allowed_stops_the_shard(world: World, allowed: int) -> None:
    world.crash()
    hours_without_a_shard(world, 1)
    world.replay_by(ReplayMode.SPARK)
    world.options = replace(world.options, replay=replace(world.options.replay, failures_allowed=allowed))
    world.start()
    done = 0

    def damaged_again() -> None:
        nonlocal done
        for _ in range(10):
            done += 1
            world.work()
            damage_results(world, SUMMARY)
            world.pass_time(1_000)
            world.settle()

    with pytest.raises(PlanStopped, match="checksum"):
        damaged_again()
    assert done == allowed + 1


def test_a_removed_job_is_recreated_under_another_plan_with_a_new_lifetime(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 2)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    before = {job.bucket: job for job in world.sqlite.jobs(world.options.shard)}
    for job in before.values():
        assert world.sqlite.remove_job(job)
    world.pass_time(HOUR)
    world.settle()
    after = {job.bucket: job for job in world.sqlite.jobs(world.options.shard)}
    assert after
    for bucket, job in after.items():
        assert job.plan != before[bucket].plan
        assert job.life == world.options.policy.margin
    recover(world)
    world.check_all_found()


def test_an_adopted_plan_lives_as_long_as_a_new_one(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 1)
    world.replay_by(ReplayMode.SPARK)
    for _ in range(4):
        world.start()
        world.crash()
        world.pass_time(4 * HOUR)
    # More than its lifetime after it was created, and less than that after it was last adopted.
    world.start()
    jobs = world.sqlite.jobs(world.options.shard)
    assert {(job.life, job.renewals) for job in jobs} == {(world.options.policy.margin, 4)}


def test_records_that_workers_have_read_are_not_lost_when_kafka_deletes_them(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 3)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    world.work()
    world.crash()
    world.log.delete_before(3)
    # In any mode: only the results still exist.
    world.replay_by(ReplayMode.DIRECT)
    world.start()
    recover(world)
    world.check_all_found()


def test_only_records_that_workers_have_not_read_are_lost_when_kafka_deletes_them(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 3)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    assert world.replays.worker(wave_records=1).step()
    world.crash()
    world.log.delete_before(2)
    with pytest.raises(DataLost, match=r"from offset 1 up to 2"):
        world.start()
    world.start(accepted=Accepted(loss_to=2))
    recover(world)
    found = world.found()
    assert {time for samples in found.values() for time in samples} == {
        world.produced[0].time,
        world.produced[2].time,
    }


@pytest.mark.parametrize("mode", [ReplayMode.DIRECT, ReplayMode.SPARK])
def test_a_tail_whose_log_is_gone_is_stored_once_the_replay_is_merged(world: World, mode: ReplayMode) -> None:
    world.crash()
    hours_without_a_shard(world, 2)
    world.replay_by(mode)
    world.start()
    produce_everywhere(world, "tail")
    world.settle()
    world.work()
    world.log.recreate()
    with pytest.raises(TopicUnfit):
        world.running.step()
    world.running.close_at_position()
    for _ in range(20):
        world.pass_time(1_000)
        world.running.step()
        world.running.flusher.step()
    assert world.running.is_fully_stored
    assert sum(row.samples for row in world.manifest().groups) == sum(len(record.samples) for record in world.produced)
    cuts = sorted(world.manifest().cuts, key=lambda cut: cut.bucket)
    assert cuts[-1].closed_early, "its hour is not ready yet"


def test_a_missing_result_is_not_taken_for_an_empty_bucket_where_no_keys_are_wanted(world: World) -> None:
    produce_everywhere(world)
    world.store.before = group_fails(other_group(world))
    world.pass_hours(1)
    world.crash()
    world.replay_by(ReplayMode.SPARK)
    world.start()
    world.work()
    for job in world.sqlite.jobs(world.options.shard):
        assert not job.wants_keys
        world.sqlite.replace_job(job, replace(job, epoch=job.epoch + 1))
    recover(world)
    world.check_all_found()


def test_reading_of_the_tail_pauses_while_too_much_waits_for_the_replay(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 1)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    for _ in range(12):
        produce_everywhere(world, "tail")
        world.pass_time(HOUR)
        world.running.step()
    assert world.running.waits_for_store()
    assert world.running.position < len(world.produced), "the number of waiting buckets is bounded"
    recover(world)
    assert world.running.position == len(world.produced)
    assert sum(row.samples for row in world.manifest().groups) == sum(len(record.samples) for record in world.produced)


@pytest.mark.parametrize("mode", ReplayMode)
def test_results_of_workers_survive_a_loss_in_any_replay_mode_of_the_next_start(world: World, mode: ReplayMode) -> None:
    """Kafka deletes the records of a finished job, and some of the next bucket, which no job has read."""
    world.crash()
    hours_without_a_shard(world, 1)
    kept = world.expected()
    produce_everywhere(world, "lost")
    hours_without_a_shard(world, 1, name="b")
    world.replay_by(ReplayMode.SPARK)
    world.start()
    assert world.replays.worker(wave_records=1).step()
    done = [job for job in world.sqlite.jobs(world.options.shard) if job.state is JobState.DONE]
    assert [(job.start, job.end) for job in done] == [(0, 1)]
    world.crash()
    world.log.delete_before(2)
    world.replay_by(mode)
    world.start(accepted=Accepted(loss_to=2))
    recover(world)
    found = world.found()
    assert {name: found[name] for name in kept if name[1] == "a"} == kept
    assert not any(name[1] == "lost" for name in found)
    assert any(name[1] == "b" for name in found)
