"""What a worker remembers of what went wrong: jobs and shards that it reads apart from others, and for how long it
leaves a shard alone.

None of it is needed for anything to be right, so it may be forgotten with the worker.
"""

from collections.abc import Iterable, Sequence

from strandline.clock import Clock
from strandline.recovery.leasing import is_open, was_given_up_with_others
from strandline.store.jobs import Job
from strandline.store.rows import ShardId

# How long to wait before the next try after something failed; doubling.
LEAST_PAUSE_S, MOST_PAUSE_S = 1.0, 60.0


class Pause:
    """A wait that doubles each time it is begun again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._length_s = 0.0
        self._until = clock.monotonic()

    def begin(self) -> None:
        """Wait from now on."""
        self._length_s = min(MOST_PAUSE_S, max(LEAST_PAUSE_S, 2 * self._length_s))
        self._until = self._clock.monotonic() + self._length_s

    @property
    def is_over(self) -> bool:
        """Whether it is time for another try."""
        return self._clock.monotonic() >= self._until


class Setbacks:
    """Those of one worker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._suspects: set[tuple[ShardId, int, str]] = set()
        self._apart: set[ShardId] = set()
        self._pauses: dict[ShardId, Pause] = {}

    def see(self, jobs: Iterable[Job]) -> None:
        """Look at all jobs there are: some were suspects of a worker before this one, and some suspects are gone."""
        waiting = [job for job in jobs if is_open(job)]
        self._suspects &= set(map(_key, waiting))
        self._suspects |= {_key(job) for job in waiting if was_given_up_with_others(job)}

    def is_suspect(self, job: Job) -> bool:
        """Whether a job was in a wave that failed: read alone, it shows whether it was the one."""
        return _key(job) in self._suspects

    def is_apart(self, shard: ShardId) -> bool:
        """Whether no other shard's jobs are to be read with those of this one, which perhaps can't be read."""
        return shard in self._apart

    def is_paused(self, shard: ShardId) -> bool:
        """Whether it is too soon for another try."""
        pause = self._pauses.get(shard)
        return pause is not None and not pause.is_over

    def failed_together(self, jobs: Iterable[Job]) -> None:
        """One of these has failed, or several: who knows."""
        self._suspects.update(map(_key, jobs))

    def failed_alone(self, job: Job) -> None:
        """A job has failed, and nothing else can be the cause."""
        self._pause(job.shard)

    def not_to_be_read(self, jobs: Sequence[Job]) -> None:
        """Something is out of reach that these need, perhaps for one of their shards only."""
        for shard in {job.shard for job in jobs}:
            self._apart.add(shard)
            self._pause(shard)

    def done(self, jobs: Iterable[Job]) -> None:
        """All is well with these, and with their shards."""
        for job in jobs:
            self._suspects.discard(_key(job))
            self._apart.discard(job.shard)
            self._pauses.pop(job.shard, None)

    def _pause(self, shard: ShardId) -> None:
        self._pauses.setdefault(shard, Pause(self._clock)).begin()


def _key(job: Job) -> tuple[ShardId, int, str]:
    return job.shard, job.bucket, job.plan
