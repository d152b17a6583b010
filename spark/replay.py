"""Replay jobs on Spark: one query per wave.

    Kafka's source -> records to blocks (`mapInArrow`) -> shuffle by unit -> blocks into the store (`mapInArrow`)

Only compact blocks are shuffled, and only small outcomes go to the driver, which writes the row that marks a job as
done. It never writes the manifest.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row, SparkSession

from strandline.clock import Clock
from strandline.errors import Fatal
from strandline.recovery.replay.job_result import JobResult
from strandline.recovery.replay.job_settings import group_by_settings, settings_of
from strandline.recovery.replay.outcome import UnitOutcome, fold_outcomes
from strandline.recovery.replay.replay_input import ReplayInput, ReplaySettings, waves_of
from strandline.recovery.replay.result_codec import encode_result
from strandline.recovery.replay.sampling import RecordSampler, sample_job
from strandline.spark.executor_store import StoreOpener
from strandline.spark.kafka_source import OffsetRange, read_ranges, source_options
from strandline.spark.shuffle_slots import shuffle_slots
from strandline.spark.sizing import MAX_BATCH_BYTES, WaveSize, wave_size
from strandline.spark.tasks import BLOCKS, OUTCOMES, RECORD_COLUMNS, map_task, reduce_task
from strandline.spark.watching import run_watched, translate_errors
from strandline.store.jobs import Job
from strandline.store.protocol import Store


class NotOneDataset(Fatal):
    """Jobs of several datasets, or of another dataset than the topic's."""


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """Where the records are. `client` has the Java client's own properties, including passwords."""

    bootstrap_servers: str
    topic: str
    client: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ReplayEndpoints:
    """What a replay reads from and writes to: the topic, a sampler of single records, the driver's store, and how
    executors open the store.
    """

    topic: KafkaTopic
    sampler: RecordSampler
    store: Store
    opener: StoreOpener


class SparkRunner:
    """A `JobRunner` in one Spark session. For one thread."""

    def __init__(
        self, session: SparkSession, endpoints: ReplayEndpoints, settings: ReplaySettings, clock: Clock
    ) -> None:
        # The same context with separate settings: those of the caller's session do not change.
        self._session = session.newSession()
        self._endpoints = endpoints
        self._settings = settings
        self._clock = clock
        # Blocks are small for the work they need: adaptive execution would put all of them into one task.
        self._session.conf.set("spark.sql.adaptive.enabled", "false")

    def check(self, job: Job) -> None:
        settings_of(job, self._settings)

    def run(self, jobs: Sequence[Job], on_progress: Callable[[float], None]) -> Mapping[Job, JobResult]:
        if len({job.shard.dataset for job in jobs}) > 1:
            raise NotOneDataset(f"jobs of the datasets {sorted({job.shard.dataset for job in jobs})} in one run")
        results: dict[Job, JobResult] = {}
        records = max(1, sum(job.end - job.start for job in jobs))
        done = 0
        waves = [
            (settings, wave) for settings, some in group_by_settings(jobs, self._settings) for wave in waves_of(some)
        ]
        for settings, wave in waves:
            size = sum(job.end - job.start for job in wave)

            def on_wave_progress(fraction: float, done: int = done, size: int = size) -> None:
                on_progress((done + fraction * size) / records)

            results |= self._run_wave(wave, settings, on_wave_progress)
            done += size
        return results

    def _run_wave(
        self, jobs: Sequence[Job], settings: ReplaySettings, on_progress: Callable[[float], None]
    ) -> dict[Job, JobResult]:
        samples = [sample_job(job, settings, self._endpoints.sampler) for job in jobs]
        context = self._session.sparkContext
        with translate_errors("getting the number of cores from Spark", context):
            cores = context.defaultParallelism
        size = wave_size(samples, cores=cores, max_unit_samples=settings.unit_samples)
        bounds = {one.job: one.bounds(settings.groups, size.unit_samples) for one in samples}
        wave_input = ReplayInput.of(jobs, settings, now=self._clock.now_ms(), bounds=bounds)
        ranges = _ranges(jobs)
        outcomes = self._outcomes(wave_input, ranges, size, on_progress) if ranges else []
        results = {}
        for job, job_input in zip(jobs, wave_input.jobs, strict=True):
            results[job] = fold_outcomes(job_input, outcomes)
            self._endpoints.store.write_result(job_input.results, [encode_result(results[job])], job_input.result_life)
        return results

    def _outcomes(
        self,
        wave_input: ReplayInput,
        ranges: Sequence[OffsetRange],
        size: WaveSize,
        on_progress: Callable[[float], None],
    ) -> list[UnitOutcome]:
        session, topic = self._session, self._endpoints.topic
        options = source_options(
            topic.bootstrap_servers,
            topic.topic,
            ranges,
            max_records_per_task=size.records_per_task,
            client=topic.client,
        )

        def collect() -> list[Row]:
            session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(size.records_per_batch))
            session.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(MAX_BATCH_BYTES))
            return self._query(read_ranges(session, options), wave_input).collect()

        named = ", ".join(f"[{one.start}, {one.end}) of partition {one.partition}" for one in ranges)
        rows = run_watched(
            session.sparkContext,
            f"strandline-replay-{uuid.uuid4()}",
            collect,
            on_progress,
            what=f"the replay of {topic.topic}, {named}",
        )
        return [UnitOutcome.from_bytes(bytes(row.outcome)) for row in rows]

    def _query(self, records: DataFrame, wave_input: ReplayInput) -> DataFrame:
        blocks = records.selectExpr(*RECORD_COLUMNS).mapInArrow(
            map_task(wave_input, shuffle_slots(wave_input.units)), BLOCKS
        )
        return blocks.repartition(wave_input.units, "slot").mapInArrow(
            reduce_task(wave_input, self._endpoints.opener), OUTCOMES
        )


def _ranges(jobs: Sequence[Job]) -> list[OffsetRange]:
    """One range per partition; empty ranges are not read."""
    found: dict[int, OffsetRange] = {}
    for job in jobs:
        shard = job.shard.shard
        before = found.get(shard)
        found[shard] = OffsetRange(shard, before.start if before else job.start, job.end)
    return [one for one in found.values() if one.start < one.end]
