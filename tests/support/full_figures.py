"""Figures of a node and a gateway with all fields set. Each has a different value, so that a confusion of two is
detected.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from strandline.clock import ManualClock
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.node.bulk.reports import JobSummary
from strandline.node.gateway.figures import (
    LATENCY_BOUNDS_S,
    GatewayFigures,
    GatewayStage,
    Outcome,
    ProducerCounts,
)
from strandline.node.job_watch.figures import JobsFigures, updated_figures
from strandline.node.metrics.front_figures import FrontFigures
from strandline.node.metrics.readiness_watch import ReadinessFigures
from strandline.node.query.answer_memory import AnswerMemory
from strandline.node.shard.bucket_report import BucketFigures
from strandline.node.shard.read_horizon import OpenTransaction
from strandline.node.shard.report import (
    BufferFigures,
    IndexFigures,
    LimitFigures,
    ProcessFigures,
    ResultCacheFigures,
    ShardReport,
)
from strandline.node.shard.segment_cache import SegmentCacheFigures
from strandline.node.shard.stages import Stage
from strandline.node.shard.status import Counters, Phase, Status
from strandline.node.shard.store_health import StoreFigures
from strandline.node.status.processes import FRONT, WORKER, ProcessState, ProcessStatus, ShardProcessStatus
from strandline.node.supervisor.node_state import NodeState
from strandline.recovery.readiness import PartitionProgress
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart
from strandline.store.jobs import JobState

NOW = 1_794_800_000_000
HOUR = 3_600_000
PROCESS = ProcessFigures(pid=4711, cpu_seconds=12.5, resident_bytes=201_000, peak_resident_bytes=202_000)


def full_status() -> Status:
    """The status of a shard in the middle of a replay, with all fields set."""
    return Status(
        phase=Phase.REPLAYING,
        fraction=0.25,
        reason="",
        lag=101,
        bucket=498_555,
        time_left=7_200_000,
        turns=102,
        entered={"acquiring": NOW - 100_000, "recovering-index": NOW - 98_000, "replaying": NOW - 60_000},
        counters=Counters(
            records=103,
            bytes=104,
            samples=105,
            new_keys=106,
            refused_rows=107,
            too_old=108,
            too_far_ahead=109,
            dead_letters=110,
            dropped_series={"NO_LABELS": 111, "TOO_MANY_LABELS": 112},
            skipped_histograms=113,
            skipped_exemplars=114,
            skipped_metadata=115,
            cuts=116,
            stored_segments=117,
            stored_samples=118,
            stored_series=119,
            stored_bytes=120,
            index_bytes=121,
            index_records=122,
            rolled_over_keys=123,
            ended_keys=124,
            store_retries=125,
            log_retries=126,
            newest_record_at=NOW - 30_000,
            last_stored_at=NOW - 40_000,
            last_index_bytes=127,
        ),
    )


def full_report() -> ShardReport:
    """The report of such a shard."""
    return ShardReport(
        full_status(),
        PROCESS,
        clocks={"node": 1_500, "store": -2_500, "broker": 3_500},
        reported_at=NOW - 500,
        position=130,
        checkpoint=131,
        epoch=132,
        manifest_rows=133,
        keys=134,
        unstored_buckets=2,
        unstored_since=NOW - 5_000_000,
        lost_dead_letters=135,
        buffer=BufferFigures(
            series=136,
            samples=137,
            replaced=138,
            memory_bytes=139,
            spilled_bytes=140,
            budget_used=141,
            spill_used=142,
        ),
        index=IndexFigures(live_keys=143, next_part_id=144, refresh_lag=1.45, disk_bytes=146),
        segment_cache=SegmentCacheFigures(bytes=157, hits=158, misses=159),
        limits=LimitFigures(
            flush_interval=HOUR,
            series=147,
            buffer_bytes=148,
            spill_bytes=149,
            segment_cache_bytes=160,
            kafka_retention=86_400_000,
            warn_behind_s=15.5,
        ),
        open_bucket=BucketFigures(0, 498_555, 498_555 * HOUR, 498_556 * HOUR, 150, 151, 152, 153, "open"),
        jobs={"pending": 3, "leased": 2, "done": 4, "failed": 1},
        stages={stage.value: place / 8 for place, stage in enumerate(Stage, 1)},
        topic_warning="topic metrics puts records at risk",
        store=StoreFigures("a store", 15.4, 155),
        behind_s=30.5,
        transaction=OpenTransaction(offset=154, records=155, since=NOW - 156_000),
        result_cache=ResultCacheFigures(hits=161, partial_hits=162, misses=163, bytes=164),
    )


def full_shard_status(shard: int = 0) -> ShardProcessStatus:
    """The status of such a shard."""
    return ShardProcessStatus(shard, ProcessState.RUNNING, pid=4711, restarts=3, report=full_report())


def active_shard_status(shard: int = 0) -> ShardProcessStatus:
    """The status of a healthy shard."""
    status = replace(full_status(), phase=Phase.ACTIVE, fraction=None, lag=0)
    report = replace(
        full_report(),
        status=status,
        unstored_since=None,
        unstored_buckets=0,
        jobs={},
        behind_s=0.0,
        transaction=None,
    )
    return replace(full_shard_status(shard), report=report)


def full_state(shards: Sequence[ShardProcessStatus] | None = None) -> NodeState:
    """The state of a node with two such shards, or with these."""
    return NodeState(
        version=200,
        shards=(full_shard_status(), full_shard_status(1)) if shards is None else tuple(shards),
        processes=(
            ProcessStatus(FRONT, ProcessState.RUNNING, pid=4712, restarts=211, process=PROCESS),
            ProcessStatus(WORKER, ProcessState.DOWN, restarts=212, exit_code=1, reason="no Java was found"),
        ),
        partitions=215,
        started_at=NOW - 213_000,
        watchdog_feeds=214,
        supervisor=ProcessFigures(pid=4710, cpu_seconds=215.5, resident_bytes=216_000, peak_resident_bytes=217_000),
    )


def full_front() -> FrontFigures:
    """The figures of a front that has answered requests of all kinds."""
    memory = AnswerMemory(126)
    memory.lease().hold(125)
    front = FrontFigures(ManualClock(NOW - 50_000), memory)
    for _ in range(3):
        front.began()
    front.ended("/api/v1/series", 200, 0.02)
    front.ended("/api/v1/series", 422, 70.0)
    front.count_query("series", "answered", series=7)
    front.count_query("samples", "warned", series=1, samples=90)
    return front


def full_readiness() -> ReadinessFigures:
    """The readiness of two partitions that were read, and one that was not."""
    hour = NOW // HOUR - 2
    return ReadinessFigures(
        looked_at=NOW - 4_000,
        newest_ready_hour=hour,
        partitions=(
            PartitionProgress(0, hour, (hour + 1) * HOUR, 1),
            PartitionProgress(1, hour + 1, (hour + 2) * HOUR, 2),
            PartitionProgress(2, None, None, None),
        ),
        flush_interval=HOUR,
        kafka_retention=24 * HOUR,
        failures=6,
    )


def full_gateway() -> GatewayFigures:
    """The figures of a gateway with all counters set."""
    return GatewayFigures(
        requests={outcome: place for place, outcome in enumerate(Outcome, 1)},
        series=301,
        samples=302,
        records=303,
        bytes_in=304,
        bytes_out=305,
        dropped_series={"NO_LABELS": 306},
        series_without_samples=307,
        skipped_exemplars=308,
        skipped_histograms=309,
        skipped_metadata=310,
        in_flight_bytes=311,
        in_flight_limit=312,
        arriving_bytes=322,
        unacknowledged_seconds=323.5,
        waiting_requests=313,
        partitions=314,
        kafka=ProducerCounts(315, 316, 317),
        clock_difference_ms=-319_000,
        unauthorized={401: 320, 403: 321},
        latency_seconds=318.5,
        latency_count=400,
        latency_buckets=tuple(range(1, len(LATENCY_BOUNDS_S) + 1)),
        stages={stage: place / 8 for place, stage in enumerate(GatewayStage, 1)},
    )


def bulk_job(name: str, state: BulkJobState = BulkJobState.RUNNING, *, kind: str = "import", **row: Any) -> BulkJob:
    """A job of seven parts, planned an hour ago."""
    return BulkJob("metrics", name, kind, "{}", "hash", 7, 240 * HOUR, NOW - HOUR, state, **row)


def job_parts(job: BulkJob, states: Sequence[JobState], counts: Counts | None = None) -> list[BulkPart]:
    """Parts in these states, each with these counts."""
    written = AttemptCounts(counts or Counts(), counts or Counts()).to_json()
    return [
        BulkPart("metrics", job.job, place, '{"uri":"a.csv"}', job.life, state, counts=written)
        for place, state in enumerate(states)
    ]


def summary(job: BulkJob, counts: Counts | None = None, states: Sequence[JobState] = ()) -> JobSummary:
    """The summary of a job, with the counts of all its parts together."""
    return replace(JobSummary.of_job(job, job_parts(job, states)), counts=counts or Counts())


def full_jobs() -> JobsFigures:
    """The figures of a running and a paused job, polled twice, with higher counts at the second time."""
    running = bulk_job("a")
    paused = bulk_job("b", BulkJobState.PAUSED, idle_since=NOW, expires_after=9 * HOUR)
    states = [JobState.DONE, JobState.DONE, JobState.DONE, JobState.LEASED, JobState.LEASED, JobState.FAILED]
    jobs = [(running, summary(running, Counts(10, 20, 30, 40, 50, 60), states)), (paused, summary(paused))]
    before = updated_figures(replace(JobsFigures(), failures=3), jobs, NOW - 60_000, 0.0)
    jobs[0] = (running, summary(running, Counts(710, 721, 732, 743, 754, 765), states))
    return updated_figures(before, jobs, NOW - 30_000, 30.0)
