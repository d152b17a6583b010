"""`strandline recover plan`: planning, and the report."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.errors import ExitCode
from strandline.index.local_copy import CopyIdentity
from strandline.node.masking import SecretMask
from strandline.node.output import OutputFormat, make_output
from strandline.node.recovering.formatting import duration, moment, size
from strandline.node.recovering.index_source import index_source, is_in_manifest
from strandline.node.recovering.plan_report import PlannedShard, PlanReport
from strandline.node.recovering.shard_plan import FoundPlan, find_plan
from strandline.recovery.checkpoints import EXPIRY_SKEW_MS
from strandline.recovery.cutting import Cutting
from strandline.recovery.estimates import IndexSource, Rates
from strandline.recovery.job_board import JobBoard
from strandline.recovery.job_order import JobOrder
from strandline.recovery.offset_policy import DataLost, FirstStart, LogMismatch, Resume, StartAt, StartFresh
from strandline.store.rows import IndexBucketRows, ShardId
from support.manifest_rows import SHARD, row
from support.shard_world import HOUR, POLICY, World, group_fails, no_fault, other_group, produce_everywhere
from support.verifying import Damage

pytestmark = pytest.mark.unit

RATES = Rates(bytes_per_second=1_000.0, start_seconds=6.0)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    # So that nothing expires during the test.
    with closing(World(tmp_path, policy=replace(POLICY, retention=1_000 * HOUR))) as created:
        yield created


def plan_of(world: World) -> FoundPlan:
    return find_plan(world.options, world.log, world.sqlite, world.clock)


def job_order_of(world: World, retention: int | None = None) -> JobOrder:
    return JobOrder(Cutting(world.options.policy.flush_interval, world.options.grace), retention)


def crash_and_fall_behind(world: World, hours: int) -> None:
    """Store some records, crash, and fall behind by this many hours with a record in each."""
    world.start()
    produce_everywhere(world)
    world.pass_hours(2)
    world.crash()
    for _ in range(hours):
        produce_everywhere(world)
        world.pass_time(HOUR)


def test_a_plan_changes_nothing(world: World) -> None:
    crash_and_fall_behind(world, 3)
    before = world.manifest()
    plan_of(world)
    assert world.manifest() == before
    assert world.sqlite.jobs(world.options.shard) == []


def test_a_plan_is_what_the_next_start_reads_again(world: World) -> None:
    crash_and_fall_behind(world, 3)
    before = {cut.bucket for cut in world.manifest().cuts}
    plan = plan_of(world)
    assert plan.decision == Resume(world.manifest().cuts[0].end)
    planned = {(job.bucket, job.start, job.end) for job in plan.jobs}
    assert len(planned) == plan.new_cuts == 3
    assert {len(job.groups) for job in plan.jobs} == {world.options.groups}
    assert all(job.wants_keys for job in plan.jobs)
    world.log.close()
    world.start()
    world.settle()
    new_cuts = {(cut.bucket, cut.start, cut.end) for cut in world.manifest().cuts if cut.bucket not in before}
    assert planned == new_cuts


def test_a_gap_of_expired_rows_does_not_prevent_a_plan(world: World) -> None:
    """The store may remove rows in any order: a remaining row may have no neighbours."""
    crash_and_fall_behind(world, 3)
    cuts = sorted(world.manifest().cuts, key=lambda cut: cut.bucket)
    assert len(cuts) == 3
    date = world.clock.now_ms() + EXPIRY_SKEW_MS
    damage = Damage(world)
    damage.execute("UPDATE cuts SET expires = ? WHERE bucket <= ?", date, cuts[1].bucket)
    damage.execute("DELETE FROM cuts WHERE bucket = ?", cuts[1].bucket)
    plan = plan_of(world)
    assert plan.decision == Resume(cuts[2].end)
    assert len(plan.jobs) == 3


def test_groups_that_were_not_stored_are_planned_below_the_index_s_checkpoint_too(world: World) -> None:
    world.start()
    world.store.before = group_fails(other_group(world))
    produce_everywhere(world)
    world.pass_hours(2)
    world.crash()
    plan = plan_of(world)
    assert {job.groups for job in plan.jobs} == {frozenset({other_group(world)})}
    assert not any(job.wants_keys for job in plan.jobs)
    assert plan.empty
    world.store.before = no_fault


def test_the_first_start_of_a_partition_is_planned_from_its_first_record(world: World) -> None:
    produce_everywhere(world)
    world.pass_time(2 * HOUR)
    produce_everywhere(world)
    plan = plan_of(world)
    assert plan.decision == StartFresh(0)
    assert [(job.start, job.end) for job in plan.jobs] == [(0, 1)]
    assert plan.tail == 1
    assert world.sqlite.state(world.options.shard) is None


@pytest.mark.parametrize(
    ("first_start", "offset"),
    [(FirstStart(StartAt.LATEST), 2), (FirstStart(StartAt.LOOK_BACK, HOUR), 1), (FirstStart(StartAt.EARLIEST), 0)],
)
def test_the_first_start_follows_the_policy(world: World, first_start: FirstStart, offset: int) -> None:
    produce_everywhere(world)
    world.pass_time(2 * HOUR)
    produce_everywhere(world)
    world.options = replace(world.options, first_start=first_start)
    assert plan_of(world).decision == StartFresh(offset)


def test_an_empty_topic_needs_no_replay(world: World) -> None:
    plan = plan_of(world)
    assert (plan.jobs, plan.tail, plan.bytes_per_record) == ((), 0, None)
    report = planned(world, plan)
    assert (report.records, report.seconds) == (0, 0.0)
    assert report.exit_code == ExitCode.OK


def test_records_that_kafka_deleted_before_they_were_stored_are_named(world: World) -> None:
    crash_and_fall_behind(world, 3)
    checkpoint = world.manifest().cuts[0].end
    world.log.delete_before(checkpoint + 1)
    with pytest.raises(DataLost) as raised:
        plan_of(world)
    assert (raised.value.first, raised.value.end) == (checkpoint, checkpoint + 1)


def test_a_recreated_topic_is_named(world: World) -> None:
    crash_and_fall_behind(world, 1)
    world.log.recreate()
    with pytest.raises(LogMismatch):
        plan_of(world)


def test_jobs_that_are_done_need_not_run_again(world: World) -> None:
    crash_and_fall_behind(world, 3)
    first = plan_of(world).jobs[0]
    board = JobBoard(world.sqlite, world.clock)
    board.adopt(world.options.shard, [replace(first, plan="p", life=10**9)])
    leased = board.lease(board.jobs(world.options.shard)[0], "w")
    assert leased is not None
    assert board.finish(leased)
    plan = plan_of(world)
    assert plan.done == {first.bucket}
    assert len(plan.to_do()) == 2
    report = planned(world, plan)
    assert [job.is_done for job in report.shards[0].jobs] == [True, False, False]
    assert report.records == sum(job.end - job.start for job in plan.to_do())


def test_the_size_of_records_is_sampled_from_the_log(world: World) -> None:
    crash_and_fall_behind(world, 3)
    plan = plan_of(world)
    read = world.log.read(plan.jobs[0].start, plan.jobs[-1].end)
    assert plan.bytes_per_record == pytest.approx(sum(map(len, read.values)) / len(read.values))


# The report.


def planned(
    world: World, plan: FoundPlan, source: IndexSource = IndexSource.BUCKETS, retention: int | None = None
) -> PlanReport:
    job_order = job_order_of(world, retention)
    shard = PlannedShard.of(0, plan, source, job_order, rates=RATES, now=world.clock.now_ms())
    return PlanReport.of("metrics", "topic", job_order, RATES, [shard])


def printed(report: PlanReport, output_format: OutputFormat = "text") -> str:
    out = StringIO()
    make_output(output_format, out, StringIO(), ManualClock(), SecretMask()).result(report)
    return out.getvalue()


def test_a_report_has_records_bytes_time_and_the_time_left_of_each_job(world: World) -> None:
    crash_and_fall_behind(world, 3)
    plan = plan_of(world)
    report = planned(world, plan, IndexSource.LOCAL_COPY, retention=24 * HOUR)
    shard = report.shards[0]
    assert plan.bytes_per_record is not None
    assert shard.bytes == round(3 * plan.bytes_per_record)
    assert report.seconds == pytest.approx(6.0 + shard.bytes / 1_000.0)
    first = shard.jobs[0]
    deleted_at = first.bucket * HOUR + world.options.grace + 24 * HOUR
    assert first.time_left_seconds == shard.time_left_seconds == (deleted_at - world.clock.now_ms()) / 1000
    text = printed(report)
    assert "Dataset metrics, topic topic, retention 1 d 0 h." in text
    assert "local copy" in text
    assert "To replay: 3 records" in text
    assert text.count(moment(first.bucket * HOUR)) == 1


def test_a_report_as_json_has_all_jobs(world: World) -> None:
    crash_and_fall_behind(world, 60)
    report = planned(world, plan_of(world))
    document = json.loads(printed(report, "json"))
    assert len(document["shards"][0]["jobs"]) == 60
    assert document["kafka_retention_seconds"] is None
    assert document["shards"][0]["source"] == "buckets"
    text = printed(report)
    assert "retention unlimited." in text
    assert "and 10 more, see --output json." in text


def test_a_shard_that_lost_data_is_reported_with_the_others_and_has_an_exit_code(world: World) -> None:
    crash_and_fall_behind(world, 1)
    resumable = planned(world, plan_of(world)).shards[0]
    lost = PlannedShard.refused(1, DataLost("partition metrics/1", 5, 9))
    other = PlannedShard.refused(2, LogMismatch("it is another one", remedy="Look"))
    report = PlanReport.of("metrics", "topic", job_order_of(world), RATES, [resumable, lost, other])
    assert report.exit_code == ExitCode.DATA_LOST
    text = printed(report)
    assert "Shard 1: partition metrics/1 has lost the records from offset 5 up to 9" in text
    assert "Shard 2: it is another one" in text
    assert PlanReport.of("m", "t", job_order_of(world), RATES, [resumable, other]).exit_code == ExitCode.FAILED


def test_without_a_size_only_the_number_of_records_is_shown(world: World) -> None:
    crash_and_fall_behind(world, 1)
    report = planned(world, replace(plan_of(world), bytes_per_record=None))
    assert (report.records, report.bytes, report.seconds) == (1, None, None)
    assert "To replay: 1 records, -, in about -." in printed(report)


# The source of the index.

ROWS = [replace(row(bucket, 1), index=IndexBucketRows(1, b"", f"o.1.{bucket}")) for bucket in (8, 7)]
COPY = CopyIdentity(SHARD.dataset, "topic-1", SHARD.shard, 8, "o.1.8")


def test_a_copy_is_used_only_if_the_manifest_names_its_bucket_and_attempt() -> None:
    assert is_in_manifest(COPY, SHARD, "topic-1", ROWS)
    assert not is_in_manifest(replace(COPY, attempt="o.1.7"), SHARD, "topic-1", ROWS)
    assert not is_in_manifest(replace(COPY, bucket=9), SHARD, "topic-1", ROWS)
    assert not is_in_manifest(COPY, SHARD, "topic-2", ROWS)
    assert not is_in_manifest(COPY, ShardId("metrics", 4), "topic-1", ROWS)
    assert not is_in_manifest(COPY, SHARD, "topic-1", [replace(ROWS[0], superseded=True)])


def test_without_a_copy_the_buckets_are_loaded_and_without_those_all_is_replayed(tmp_path: Path) -> None:
    assert index_source(SHARD, tmp_path / "none", "topic-1", ROWS, heap_mb=64) is IndexSource.BUCKETS
    assert index_source(SHARD, tmp_path / "none", "topic-1", [], heap_mb=64) is IndexSource.REPLAY


# Formats.


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "-"),
        (0.0, "0.0 s"),
        (9.94, "9.9 s"),
        (59.0, "59 s"),
        (61.0, "1 min 01 s"),
        (3_600.0, "1 h 00 min"),
        (90_000.0, "1 d 1 h"),
        (-61.0, "-1 min 01 s"),
    ],
)
def test_a_duration_in_words(seconds: float | None, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("number", "words"), [(None, "-"), (0, "0 B"), (1023, "1023 B"), (2048, "2.0 KiB"), (5 << 30, "5.0 GiB")]
)
def test_a_size_in_words(number: int | None, words: str) -> None:
    assert size(number) == words


def test_a_time_is_in_utc() -> None:
    assert moment(1_700_000_000_000) == "2023-11-14 22:13:20Z"
    assert moment(None) == "-"
