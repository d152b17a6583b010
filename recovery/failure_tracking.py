"""What a worker remembers of what went wrong: jobs and shards that it reads apart from others, and for how long it
leaves a shard alone.

None of it is needed for anything to be right, so it may be forgotten with the worker.
"""

from collections.abc import Iterable, Sequence

from strandline.clock import Clock
from strandline.recovery.leasing import is_marked_suspect, is_open
from strandline.recovery.waves import MAX_JOBS
from strandline.store.jobs import Job, JobState
from strandline.store.rows import ShardId

# How long to wait before the next try after something failed; doubling.
MIN_BACKOFF_S, MAX_BACKOFF_S = 1.0, 60.0
# What `leasing.reclaim` says of a job.
_WORKER_LOST = "its worker was lost: "


class Backoff:
    """A wait that doubles each time it is begun again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._length_s = 0.0
        self._until = clock.monotonic()

    def begin(self) -> None:
        """Wait from now on."""
        self._length_s = min(MAX_BACKOFF_S, max(MIN_BACKOFF_S, 2 * self._length_s))
        self._until = self._clock.monotonic() + self._length_s

    @property
    def is_over(self) -> bool:
        """Whether it is time for another try."""
        return self._clock.monotonic() >= self._until


def was_lost_once(job: Job) -> bool:
    """Whether all that is known against a job is that a worker was lost with it, perhaps in a wave and for no fault of
    any job: hosts go down.
    """
    return job.state is JobState.PENDING and job.failures == 1 and _WORKER_LOST in job.reason


class FailureTracker:
    """Those of one worker.

    After something went wrong with a wave, or a worker was lost with it, the jobs of it are suspects. One of them is
    read alone. If that succeeds, the others are read together again; if it was a wave of this worker that failed, then
    first half as many as in that wave.
    """

    def __init__(self, clock: Clock, failures_allowed: int = 3) -> None:
        self._clock, self._failures_allowed = clock, failures_allowed
        self._suspects: set[tuple[ShardId, int, str]] = set()
        self._most, self._most_after_success = 1, MAX_JOBS
        self._isolated: set[ShardId] = set()
        self._backoffs: dict[ShardId, Backoff] = {}

    def update(self, jobs: Iterable[Job]) -> None:
        """Look at all jobs there are: some were suspects of a worker before this one, and some suspects are gone."""
        waiting = [job for job in jobs if is_open(job)]
        self._suspects &= set(map(_key, waiting))
        found = {_key(job) for job in waiting if is_marked_suspect(job) or self._is_shared_again(job)}
        if found - self._suspects:
            # Of another worker, of whose wave nothing else is known.
            self._most, self._most_after_success = 1, MAX_JOBS
        self._suspects |= found

    def is_suspect(self, job: Job) -> bool:
        """Whether a job was in a wave that failed, and nothing has shown yet that such jobs can be read."""
        return _key(job) in self._suspects and self._most < MAX_JOBS

    def runs_alone(self, job: Job) -> bool:
        """Whether a job is never read with others: it has failed by itself, or with its worker more than once."""
        return job.failures > 1 or (job.failures == 1 and _key(job) not in self._suspects)

    @property
    def max_suspects(self) -> int:
        """How many suspects may be read together."""
        return self._most

    def is_isolated(self, shard: ShardId) -> bool:
        """Whether no other shard's jobs are to be read with those of this one, which perhaps can't be read."""
        return shard in self._isolated

    def is_backing_off(self, shard: ShardId) -> bool:
        """Whether it is too soon for another try."""
        backoff = self._backoffs.get(shard)
        return backoff is not None and not backoff.is_over

    def failed_together(self, jobs: Iterable[Job]) -> None:
        """One of these has failed, or several: who knows."""
        keys = set(map(_key, jobs))
        self._suspects |= keys
        self._most, self._most_after_success = 1, max(1, len(keys) // 2)

    def failed_alone(self, job: Job) -> None:
        """A job has failed, and nothing else can be the cause."""
        self._suspects.discard(_key(job))
        self._backoff(job.shard)

    def unreachable(self, jobs: Sequence[Job]) -> None:
        """Something is out of reach that these need, perhaps for one of their shards only."""
        for shard in {job.shard for job in jobs}:
            self._isolated.add(shard)
            self._backoff(shard)

    def done(self, jobs: Iterable[Job]) -> None:
        """All is well with these, and with their shards."""
        jobs = list(jobs)
        if any(_key(job) in self._suspects for job in jobs):
            self._most, self._most_after_success = self._most_after_success, MAX_JOBS
        for job in jobs:
            self._suspects.discard(_key(job))
            self._isolated.discard(job.shard)
            self._backoffs.pop(job.shard, None)

    def _is_shared_again(self, job: Job) -> bool:
        # If it is lost once more, it must still have a try alone before it has failed for good.
        return was_lost_once(job) and job.failures < self._failures_allowed

    def _backoff(self, shard: ShardId) -> None:
        self._backoffs.setdefault(shard, Backoff(self._clock)).begin()


def _key(job: Job) -> tuple[ShardId, int, str]:
    return job.shard, job.bucket, job.plan
