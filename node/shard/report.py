"""The report of a shard's process to the supervisor: a value that is sent as JSON.

A report is created twice a second while the shard's threads run. It reads counters and lengths. It waits only for locks
that are held for a moment, and sends no request to the log or the store.
"""

import os
import resource
import time
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from strandline.node.shard.bucket_report import BucketFigures
from strandline.node.shard.read_horizon import Horizon, OpenTransaction
from strandline.node.shard.segment_cache import SegmentCacheFigures
from strandline.node.shard.status import Counters, Phase, Status
from strandline.node.shard.store_health import StoreFigures
from strandline.store.jobs import JobState

if TYPE_CHECKING:
    # The supervisor imports this module, and must not load Lucene and the kernels.
    from strandline.node.shard.options import ShardOptions
    from strandline.node.shard.running import RunningShard
    from strandline.node.shard.shard import Shard

_JOBS_OVER = (JobState.DONE.value, JobState.FAILED.value)


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """The process: its id, CPU seconds and memory in bytes."""

    pid: int
    cpu_seconds: float
    resident_bytes: int
    peak_resident_bytes: int

    @classmethod
    def now(cls) -> "ProcessFigures":
        """The figures of this process."""
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return cls(os.getpid(), time.process_time(), pages * resource.getpagesize(), peak)


@dataclass(frozen=True, slots=True)
class BufferFigures:
    """The write buffer: the figures of the open bucket, and the memory and disk that all unstored buckets use."""

    series: int = 0
    samples: int = 0
    replaced: int = 0
    memory_bytes: int = 0
    spilled_bytes: int = 0
    budget_used: int = 0
    spill_used: int = 0


@dataclass(frozen=True, slots=True)
class IndexFigures:
    """The index: the number of live keys, the next part id, the age in seconds of the oldest change that searches don't
    see, and the size of Lucene's files.
    """

    live_keys: int = 0
    next_part_id: int = 0
    refresh_lag: float = 0.0
    disk_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ResultCacheFigures:
    """The result cache: how often it had all steps of a fragment, some, or none; and its size."""

    hits: int = 0
    partial_hits: int = 0
    misses: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class LimitFigures:
    """The options that are needed to interpret other figures. Durations are milliseconds. `kafka_retention` is None if
    the topic's retention is unlimited.
    """

    flush_interval: int = 0
    series: int = 0
    buffer_bytes: int = 0
    spill_bytes: int = 0
    segment_cache_bytes: int = 0
    kafka_retention: int | None = None
    warn_behind_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ShardReport:
    """A shard at one moment, `reported_at` by its clock.

    - `position`: the next offset that it reads. `checkpoint`: the lowest offset that is not stored, -1 if the shard was
      never read.
    - `unstored_since`: the end of the oldest closed bucket that is not stored.
    - `jobs`: the number of replay jobs by state. `stages`: CPU seconds by stage.
    - `clocks`: by how many milliseconds each clock is ahead of the present.
    - `topic_warning`: describes a setting of the topic that puts records at risk. `store`: whether the store answers.
    - `behind_s`: how long unread records may have been waiting in the log; 0 if all known records are read, None if
      unknown. `transaction`: an open transaction.
    """

    status: Status
    process: ProcessFigures
    reported_at: int = 0
    position: int | None = None
    checkpoint: int = -1
    epoch: int | None = None
    manifest_rows: int = 0
    keys: int = 0
    unstored_buckets: int = 0
    unstored_since: int | None = None
    lost_dead_letters: int = 0
    buffer: BufferFigures = BufferFigures()
    index: IndexFigures = IndexFigures()
    segment_cache: SegmentCacheFigures = field(default_factory=SegmentCacheFigures)
    limits: LimitFigures = LimitFigures()
    open_bucket: BucketFigures | None = None
    jobs: dict[str, int] = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)
    clocks: dict[str, int] = field(default_factory=dict)
    topic_warning: str = ""
    store: StoreFigures = field(default_factory=StoreFigures)
    behind_s: float | None = None
    transaction: OpenTransaction | None = None
    result_cache: ResultCacheFigures = ResultCacheFigures()

    @property
    def open_jobs(self) -> int:
        """The number of replay jobs that are not finished."""
        return sum(count for state, count in self.jobs.items() if state not in _JOBS_OVER)

    def to_json(self) -> bytes:
        """Encode it for `from_json`."""
        return orjson.dumps(self)

    @classmethod
    def from_json(cls, document: bytes) -> "ShardReport":
        """Parse what `to_json` of the same version wrote."""
        return cls.from_fields(orjson.loads(document))

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> "ShardReport":
        """Like `from_json`, from a parsed document, which is modified."""
        status, opened, transaction = fields.pop("status"), fields.pop("open_bucket"), fields.pop("transaction")
        counters, phase = Counters(**status.pop("counters")), Phase(status.pop("phase"))
        return cls(
            Status(phase=phase, counters=counters, **status),
            ProcessFigures(**fields.pop("process")),
            buffer=BufferFigures(**fields.pop("buffer")),
            index=IndexFigures(**fields.pop("index")),
            segment_cache=SegmentCacheFigures(**fields.pop("segment_cache")),
            limits=LimitFigures(**fields.pop("limits")),
            open_bucket=BucketFigures(**opened) if opened is not None else None,
            store=StoreFigures(**fields.pop("store")),
            transaction=OpenTransaction(**transaction) if transaction is not None else None,
            result_cache=ResultCacheFigures(**fields.pop("result_cache")),
            **fields,
        )


def report_of(running: "RunningShard") -> ShardReport:
    """The current report of a shard in this process. Any thread may call it, also while the shard starts."""
    shard, parts = running.shard, running.parts
    status, now = running.status.copy(), parts.clock.now_ms()
    # A reason may contain a path, which need not be valid Unicode.
    status.reason = status.reason.encode(errors="replace").decode()
    process, limits = ProcessFigures.now(), _limits(parts.options)
    store = parts.store_health.figures() if parts.store_health is not None else StoreFigures()
    if shard is None:
        return ShardReport(
            status,
            process,
            reported_at=now,
            limits=limits,
            clocks=parts.present.readings().differences,
            topic_warning=parts.options.topic_warning,
            store=store,
        )
    closed, merge = shard.flusher.closed_buckets(), shard.merge
    interval, horizon = parts.options.policy.flush_interval, shard.horizon.now()
    return ShardReport(
        status,
        process,
        reported_at=now,
        position=shard.position,
        checkpoint=shard.view.lowest_checkpoint,
        epoch=shard.ownership.epoch,
        manifest_rows=shard.view.row_count,
        keys=len(shard.index.table),
        unstored_buckets=len(closed),
        unstored_since=(closed[0].bucket + 1) * interval if closed else None,
        lost_dead_letters=parts.dead_letters.counts().lost,
        buffer=_buffer(shard),
        index=IndexFigures(
            live_keys=shard.index.columns.live,
            next_part_id=shard.index.next_part_id,
            refresh_lag=parts.index_storage.refresh_lag(),
            disk_bytes=parts.index_storage.disk_bytes(),
        ),
        segment_cache=shard.segment_cache.figures(),
        limits=limits,
        open_bucket=_open_bucket(shard),
        jobs={state.value: count for state, count in merge.replay.job_states.items()} if merge is not None else {},
        stages={stage.value: seconds for stage, seconds in shard.stages.seconds.items()},
        clocks=parts.present.readings().differences,
        topic_warning=parts.options.topic_warning,
        store=store,
        behind_s=_behind_s(status, horizon),
        transaction=horizon.transaction,
    )


def _behind_s(status: Status, horizon: Horizon) -> float | None:
    if status.lag is None or (horizon.is_behind and not isfinite(horizon.age_s)):
        return None
    return horizon.age_s if horizon.is_behind else 0.0


def _limits(options: "ShardOptions") -> LimitFigures:
    return LimitFigures(
        flush_interval=options.policy.flush_interval,
        series=options.series_limit,
        buffer_bytes=options.buffer_bytes,
        spill_bytes=options.spill_bytes,
        segment_cache_bytes=options.segment_cache_bytes,
        kafka_retention=options.kafka_retention,
        warn_behind_s=options.warn_behind_s,
    )


def _buffer(shard: "Shard") -> BufferFigures:
    buffer = shard.buffer.status()
    return BufferFigures(
        series=buffer.series,
        samples=buffer.samples,
        replaced=buffer.replaced,
        memory_bytes=buffer.memory_bytes,
        spilled_bytes=buffer.spilled_bytes,
        budget_used=shard.memory.used,
        spill_used=shard.memory.spill.used,
    )


def _open_bucket(shard: "Shard") -> BucketFigures:
    """The open bucket of the index. In a replay, it is older than that of the buffer, which has the tail."""
    opened, interval, buffer = shard.index.open, shard.parts.options.policy.flush_interval, shard.buffer
    status = buffer.status() if buffer.bucket == opened.bucket else None
    return BucketFigures(
        shard=shard.parts.options.shard.shard,
        bucket=opened.bucket,
        start=opened.bucket * interval,
        end=(opened.bucket + 1) * interval,
        # Bitmaps are changed by single C calls, during which no other thread runs.
        active=len(opened.active),
        changed=len(opened.changed),
        samples=status.samples if status is not None else 0,
        bytes=status.memory_bytes + status.spilled_bytes if status is not None else 0,
        state="open",
    )
