"""The metric families of shards, from the last reports of their processes. Pure."""

from collections.abc import Callable

from strandline.node.metrics import shard_reading_metrics as reading
from strandline.node.metrics import shard_storing_metrics as storing
from strandline.node.metrics.families import Families, in_seconds
from strandline.node.metrics.metric import Metric
from strandline.node.shard.phases import lag_seconds, phase_seconds, seconds_left
from strandline.node.shard.report import ShardReport
from strandline.node.shard.stages import Stage
from strandline.node.shard.status import Phase
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from strandline.store.jobs import JobState

Figure = Callable[[ShardReport], float | None]


def put_shard(families: Families, process: ShardProcessStatus, now: int) -> None:
    """All metrics of a shard. Without a report, only the state of its process."""
    shard, report = str(process.shard), process.report
    running = process.state is ProcessState.RUNNING and report is not None
    families.put(reading.UP, int(running), shard)
    for state in ProcessState:
        families.put(reading.PROCESS_STATE, int(state is process.state), shard, state.value)
    families.put(reading.RESTARTS, process.restarts, shard)
    for phase in Phase:
        is_in = report is not None and report.status.phase is phase
        families.put(storing.PHASE, int(is_in), shard, phase.value)
    if report is None:
        return
    for metric, figure in (*_FIGURES, *(_LOADED if report.epoch is not None else ())):
        families.put(metric, figure(report), shard)
    _put_times(families, report, shard, now)
    _put_by_label(families, report, shard, now)


def _put_times(families: Families, report: ShardReport, shard: str, now: int) -> None:
    """Metrics that depend on the time of the scrape."""
    status, unstored = report.status, report.unstored_since
    families.put(reading.REPORT_AGE, max(0, now - report.reported_at) / 1000, shard)
    families.put(reading.LAG_SECONDS, lag_seconds(report, now), shard)
    if status.lag is not None:
        transaction = report.transaction
        families.put(reading.HELD_BACK, transaction.records if transaction is not None else 0, shard)
        open_for = max(0, now - transaction.since) / 1000 if transaction is not None else 0
        families.put(reading.TRANSACTION_SECONDS, open_for, shard)
    if report.epoch is not None:
        families.put(storing.UNSTORED_AGE, max(0, now - unstored) / 1000 if unstored is not None else 0, shard)
    families.put(storing.TIME_LEFT, seconds_left(status, now), shard)


def _put_by_label(families: Families, report: ShardReport, shard: str, now: int) -> None:
    """Metrics with labels besides the shard. Known label values are exposed from the start, so that `rate` includes the
    first increase.
    """
    counters = report.status.counters
    for stage in Stage:
        families.put(reading.STAGE_CPU, report.stages.get(stage.value, 0.0), shard, stage.value)
    for reason, count in sorted(counters.dropped_series.items()):
        families.put(reading.DROPPED_SERIES, count, shard, reason.lower().replace("_", "-"))
    families.put(reading.DROPPED_SAMPLES, counters.too_old, shard, "too-old")
    families.put(reading.DROPPED_SAMPLES, counters.too_far_ahead, shard, "too-far-ahead")
    families.put(reading.SKIPPED, counters.skipped_histograms, shard, "histogram")
    families.put(reading.SKIPPED, counters.skipped_exemplars, shard, "exemplar")
    families.put(reading.SKIPPED, counters.skipped_metadata, shard, "metadata")
    cache = report.result_cache
    for outcome, count in (("hit", cache.hits), ("partial", cache.partial_hits), ("miss", cache.misses)):
        families.put(reading.RESULT_CACHE, count, shard, outcome)
    for clock, ahead in report.clocks.items():
        families.put(reading.CLOCK_DIFFERENCE, ahead / 1000, shard, clock)
    for phase, seconds in phase_seconds(report.status, now).items():
        families.put(storing.START_SECONDS, seconds, shard, phase.value)
    for state in JobState:
        families.put(storing.REPLAY_JOBS, report.jobs.get(state.value, 0), shard, state.value)


def _time(milliseconds: int) -> float | None:
    """A Unix time in seconds; None for 0, which means never."""
    return milliseconds / 1000 if milliseconds else None


_FIGURES: tuple[tuple[Metric, Figure], ...] = (
    (reading.TURNS, lambda report: report.status.turns),
    (reading.CPU, lambda report: report.process.cpu_seconds),
    (reading.RESIDENT, lambda report: report.process.resident_bytes),
    (reading.PEAK_RESIDENT, lambda report: report.process.peak_resident_bytes),
    (reading.RECORDS, lambda report: report.status.counters.records),
    (reading.BYTES, lambda report: report.status.counters.bytes),
    (reading.SAMPLES, lambda report: report.status.counters.samples),
    (reading.NEW_KEYS, lambda report: report.status.counters.new_keys),
    (reading.REFUSED_ROWS, lambda report: report.status.counters.refused_rows),
    (reading.DEAD_LETTERS, lambda report: report.status.counters.dead_letters),
    (reading.LOG_RETRIES, lambda report: report.status.counters.log_retries),
    (reading.LAG_OFFSETS, lambda report: report.status.lag),
    (reading.NEWEST_RECORD, lambda report: _time(report.status.counters.newest_record_at)),
    (reading.RESULT_CACHE_BYTES, lambda report: report.result_cache.bytes),
    (reading.BUDGET_LIMIT, lambda report: report.limits.buffer_bytes),
    (reading.SPILL_LIMIT, lambda report: report.limits.spill_bytes),
    (reading.SEGMENT_CACHE_LIMIT, lambda report: report.limits.segment_cache_bytes),
    (storing.STORED_SEGMENTS, lambda report: report.status.counters.stored_segments),
    (storing.STORED_SAMPLES, lambda report: report.status.counters.stored_samples),
    (storing.STORED_SERIES, lambda report: report.status.counters.stored_series),
    (storing.STORED_BYTES, lambda report: report.status.counters.stored_bytes),
    (storing.STORE_RETRIES, lambda report: report.status.counters.store_retries),
    (storing.STORE_UNANSWERED, lambda report: report.store.unanswered_s),
    (storing.LAST_STORED, lambda report: _time(report.status.counters.last_stored_at)),
    (storing.FLUSH_INTERVAL, lambda report: report.limits.flush_interval / 1000),
    (storing.KEYS_LIMIT, lambda report: report.limits.series),
    (storing.CUTS, lambda report: report.status.counters.cuts),
    (storing.INDEX_RECORDS, lambda report: report.status.counters.index_records),
    (storing.ROLLED_OVER, lambda report: report.status.counters.rolled_over_keys),
    (storing.ENDED, lambda report: report.status.counters.ended_keys),
    (storing.INDEX_BYTES, lambda report: report.status.counters.index_bytes),
    (storing.LAST_INDEX_BYTES, lambda report: report.status.counters.last_index_bytes or None),
    (storing.PROGRESS, lambda report: report.status.fraction),
    (storing.RETENTION_MARGIN, lambda report: in_seconds(report.status.time_left)),
    (storing.KAFKA_RETENTION, lambda report: in_seconds(report.limits.kafka_retention)),
)
# Known once the index is loaded.
_LOADED: tuple[tuple[Metric, Figure], ...] = (
    (reading.LOST_DEAD_LETTERS, lambda report: report.lost_dead_letters),
    (reading.POSITION, lambda report: report.position),
    (reading.BUFFER_SERIES, lambda report: report.buffer.series),
    (reading.BUFFER_SAMPLES, lambda report: report.buffer.samples),
    (reading.BUFFER_REPLACED, lambda report: report.buffer.replaced),
    (reading.BUFFER_BYTES, lambda report: report.buffer.memory_bytes),
    (reading.BUDGET_USED, lambda report: report.buffer.budget_used),
    (reading.SPILLED, lambda report: report.buffer.spill_used),
    (reading.SEGMENT_CACHE_BYTES, lambda report: report.segment_cache.bytes),
    (reading.SEGMENT_CACHE_HITS, lambda report: report.segment_cache.hits),
    (reading.SEGMENT_CACHE_MISSES, lambda report: report.segment_cache.misses),
    (storing.UNSTORED_BUCKETS, lambda report: report.unstored_buckets),
    (storing.KEYS, lambda report: report.keys),
    (storing.LIVE_KEYS, lambda report: report.index.live_keys),
    (storing.NEXT_PART_ID, lambda report: report.index.next_part_id),
    (storing.REFRESH_LAG, lambda report: report.index.refresh_lag),
    (storing.LUCENE_BYTES, lambda report: report.index.disk_bytes),
    (storing.BUCKET_START, lambda report: report.open_bucket.start / 1000 if report.open_bucket is not None else None),
    (storing.BUCKET_ACTIVE, lambda report: report.open_bucket.active if report.open_bucket is not None else None),
    (storing.BUCKET_CHANGED, lambda report: report.open_bucket.changed if report.open_bucket is not None else None),
    (storing.CHECKPOINT, lambda report: report.checkpoint if report.checkpoint >= 0 else None),
    (storing.MANIFEST_ROWS, lambda report: report.manifest_rows),
    (storing.EPOCH, lambda report: report.epoch),
)
