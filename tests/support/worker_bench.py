"""A store with replay jobs, workers, and runners that a test controls."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from strandline.clock import ManualClock
from strandline.errors import Fatal
from strandline.recovery.cutting import Cutting
from strandline.recovery.job_board import JobBoard
from strandline.recovery.job_order import JobOrder
from strandline.recovery.replay.job_result import JobResult
from strandline.recovery.replay.runner import JobRunner
from strandline.recovery.replay_worker import ReplayWorker, WaveProgress, WorkerOptions
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store
from strandline.store.rows import ShardId
from strandline.store.sqlite import open_sqlite_store
from support.manifest_rows import NEVER

SHARDS = [ShardId("m", 0), ShardId("m", 1)]
JOB_ORDER = JobOrder(Cutting(3_600_000, 30_000), None)
OnProgress = Callable[[float], None]


def job(shard: int, bucket: int) -> Job:
    groups = frozenset({0})
    return Job(SHARDS[shard], bucket, "p", 10 * bucket, 10 * bucket + 10, groups, wants_keys=True, life=NEVER)


class Bench:
    """A store with jobs, and workers."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.store: Store = open_sqlite_store(folder / "store.sqlite", self.clock)
        self.board = JobBoard(self.store, self.clock)
        self.progress: list[WaveProgress] = []

    def plan(self, *jobs: Job) -> None:
        for job in jobs:
            assert self.store.add_job(job)

    def worker(self, runner: JobRunner, name: str = "w", **options: Any) -> ReplayWorker:
        return ReplayWorker(
            options.pop("store", self.store),
            SHARDS,
            runner,
            self.clock,
            name,
            job_order=JOB_ORDER,
            options=WorkerOptions(**options),
            on_progress=self.progress.append,
        )

    def progress_reports(self) -> list[tuple[list[int], float]]:
        return [([job.bucket for job in report.jobs], report.fraction) for report in self.progress]

    def states(self, shard: int = 0) -> dict[int, JobState]:
        return {job.bucket: job.state for job in self.store.jobs(SHARDS[shard])}

    def job(self, bucket: int) -> Job:
        return next(job for job in self.store.jobs(SHARDS[0]) if job.bucket == bucket)


class FakeRunner:
    """A runner that records its jobs, and calls a function of the test during each run."""

    def __init__(
        self, during_run: Callable[[Sequence[Job], OnProgress], None] = lambda _jobs, _on_progress: None
    ) -> None:
        self.runs: list[list[tuple[int, int]]] = []
        self._during_run = during_run

    def check(self, job: Job) -> None:
        """Accepts any job."""

    def run(self, jobs: Sequence[Job], on_progress: OnProgress) -> Mapping[Job, JobResult]:
        self.runs.append([(job.shard.shard, job.bucket) for job in jobs])
        self._during_run(jobs, on_progress)
        return {}


class BadRecord(Fatal):
    """An error that a retry does not fix."""


def failing_runner(error: Exception, *buckets: int) -> FakeRunner:
    def fail(jobs: Sequence[Job], _on_progress: OnProgress) -> None:
        if any(job.bucket in buckets for job in jobs):
            raise error

    return FakeRunner(fail)
