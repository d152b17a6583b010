"""What a worker remembers of failures: which jobs and shards it reads separately from others, and how long it leaves a
shard alone.

Correctness does not depend on this state, so it is only kept in memory.
"""

from collections.abc import Iterable, Sequence

from strandline.clock import Clock
from strandline.recovery.leasing import is_marked_suspect, is_open
from strandline.recovery.waves import MAX_JOBS
from strandline.store.jobs import Job, JobState
from strandline.store.rows import ShardId

# The first and the longest wait after a failure; each failure doubles it.
MIN_BACKOFF_S, MAX_BACKOFF_S = 1.0, 60.0
# The reason that `leasing.reclaim` stores with a job.
_WORKER_LOST = "its worker was lost: "


class Backoff:
    """A wait that doubles each time it begins again."""

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
        """Whether it is time for the next try."""
        return self._clock.monotonic() >= self._until


def was_lost_once(job: Job) -> bool:
    """Whether the only failure of a job is the loss of one worker, perhaps in a wave and not because of any job: hosts
    fail.
    """
    return job.state is JobState.PENDING and job.failures == 1 and _WORKER_LOST in job.reason


class FailureTracker:
    """The failures seen by one worker.

    If a wave fails, or its worker is lost, its jobs become suspects. One suspect runs alone. If it succeeds, the other
    suspects run together again. After a failed wave of this worker, first half as many as in that wave run together.
    """

    def __init__(self, clock: Clock, failures_allowed: int = 3) -> None:
        self._clock, self._failures_allowed = clock, failures_allowed
        self._suspects: set[tuple[ShardId, int, str]] = set()
        self._max_suspects, self._max_after_success = 1, MAX_JOBS
        self._isolated: set[ShardId] = set()
        self._backoffs: dict[ShardId, Backoff] = {}

    def update(self, jobs: Iterable[Job]) -> None:
        """Process the current jobs: add suspects of other workers, and drop suspects that no longer exist."""
        waiting = [job for job in jobs if is_open(job)]
        self._suspects &= set(map(_key, waiting))
        found = {_key(job) for job in waiting if is_marked_suspect(job) or self._is_shared_again(job)}
        if found - self._suspects:
            # Suspects of another worker, whose wave is unknown.
            self._max_suspects, self._max_after_success = 1, MAX_JOBS
        self._suspects |= found

    def is_suspect(self, job: Job) -> bool:
        """Whether a job was in a failed wave, and no success has cleared such jobs since."""
        return _key(job) in self._suspects and self._max_suspects < MAX_JOBS

    def runs_alone(self, job: Job) -> bool:
        """Whether a job never runs together with others: it has failed alone, or was lost with more than one worker."""
        return job.failures > 1 or (job.failures == 1 and _key(job) not in self._suspects)

    @property
    def max_suspects(self) -> int:
        """How many suspects may run together."""
        return self._max_suspects

    def is_isolated(self, shard: ShardId) -> bool:
        """Whether a shard's jobs are not read together with those of other shards, because perhaps the shard can't be
        read.
        """
        return shard in self._isolated

    def is_backing_off(self, shard: ShardId) -> bool:
        """Whether it is too soon for another try."""
        backoff = self._backoffs.get(shard)
        return backoff is not None and not backoff.is_over

    def failed_together(self, jobs: Iterable[Job]) -> None:
        """At least one of these jobs has failed; which one is unknown."""
        keys = set(map(_key, jobs))
        self._suspects |= keys
        self._max_suspects, self._max_after_success = 1, max(1, len(keys) // 2)

    def failed_alone(self, job: Job) -> None:
        """A job has failed, and no other job can be the cause."""
        self._suspects.discard(_key(job))
        self._backoff(job.shard)

    def unreachable(self, jobs: Sequence[Job]) -> None:
        """Something that these jobs need is unreachable, perhaps for only one of their shards."""
        for shard in {job.shard for job in jobs}:
            self._isolated.add(shard)
            self._backoff(shard)

    def done(self, jobs: Iterable[Job]) -> None:
        """These jobs have succeeded, so they and their shards are cleared."""
        jobs = list(jobs)
        if any(_key(job) in self._suspects for job in jobs):
            self._max_suspects, self._max_after_success = self._max_after_success, MAX_JOBS
        for job in jobs:
            self._suspects.discard(_key(job))
            self._isolated.discard(job.shard)
            self._backoffs.pop(job.shard, None)

    def _is_shared_again(self, job: Job) -> bool:
        # If it is lost again, there must be a try left in which it runs alone before it fails permanently.
        return was_lost_once(job) and job.failures < self._failures_allowed

    def _backoff(self, shard: ShardId) -> None:
        self._backoffs.setdefault(shard, Backoff(self._clock)).begin()


def _key(job: Job) -> tuple[ShardId, int, str]:
    return job.shard, job.bucket, job.plan
