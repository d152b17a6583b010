"""A worker's own reads from Kafka: checks that the log is still the planned one, and samples records."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing

from strandline.node.shard.log import PartitionLog
from strandline.recovery.planning import ShardPlan, WantedJobs, recheck
from strandline.recovery.replay.job_result import JobResult
from strandline.recovery.replay.runner import JobRunner
from strandline.store.jobs import Job
from strandline.store.protocol import Store
from strandline.store.rows import ShardId

_READ_TIMEOUT_S, _READ_ATTEMPTS = 2.0, 15
OpenLog = Callable[[int], PartitionLog]


class LogSampler:
    """The `RecordSampler` over partitions' logs. Logs are opened on first use and kept until `close`."""

    def __init__(self, open_log: OpenLog) -> None:
        self._open_log = open_log
        self._logs: dict[int, PartitionLog] = {}
        self._closing = ExitStack()

    def __call__(self, shard: int, offsets: Sequence[int], end: int) -> Sequence[bytes]:
        log, values, position = self.log(shard), list[bytes](), -1
        for offset in offsets:
            if offset < position:
                continue  # The previous offset already gave this record.
            found = _first_record(log, offset, end)
            if found is None:
                break
            value, position = found
            values.append(value)
        return values

    def log(self, shard: int) -> PartitionLog:
        """A partition's log, for one thread."""
        if shard not in self._logs:
            self._logs[shard] = self._closing.enter_context(closing(self._open_log(shard)))
        return self._logs[shard]

    def close(self) -> None:
        """Close all logs. Idempotent."""
        self._closing.close()
        self._logs.clear()


class CheckedRunner:
    """A `JobRunner` that checks the log before each run, because a plan may be days old.

    Raises `DataLost` or `LogMismatch` if the log no longer has the planned records.
    """

    def __init__(self, runner: JobRunner, store: Store, logs: LogSampler) -> None:
        self._runner, self._store, self._logs = runner, store, logs

    def check(self, job: Job) -> None:
        self._runner.check(job)

    def run(self, jobs: Sequence[Job], on_progress: Callable[[float], None]) -> Mapping[Job, JobResult]:
        by_shard: dict[ShardId, list[Job]] = {}
        for job in jobs:
            by_shard.setdefault(job.shard, []).append(job)
        for shard, shard_jobs in by_shard.items():
            self._recheck(shard, shard_jobs)
        return self._runner.run(jobs, on_progress)

    def _recheck(self, shard: ShardId, jobs: Sequence[Job]) -> None:
        log, state = self._logs.log(shard.shard), self._store.state(shard)
        topic_id = log.topic_id()
        plan = ShardPlan(
            shard,
            state.topic_id if state is not None else topic_id,
            max(job.end for job in jobs),
            WantedJobs(tuple(jobs), ()),
        )
        recheck(plan, log.ends(), topic_id)


def _first_record(log: PartitionLog, offset: int, end: int) -> tuple[bytes, int] | None:
    """The value of the first record from an offset on, and the position after it. None if there is none below `end`, or
    after a timeout: a missing sample is harmless.
    """
    log.seek(offset)
    for _ in range(_READ_ATTEMPTS):
        found = log.poll(1, _READ_TIMEOUT_S)
        if len(found):
            return (found.values[0], int(found.offsets[0]) + 1) if found.offsets[0] < end else None
        if found.position >= end:
            return None
    return None
