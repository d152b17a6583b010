"""Whoever does replay jobs: Spark, or the twin in memory."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from strandline.errors import Fatal, Retryable
from strandline.recovery.replay.job_result import JobResult
from strandline.store.jobs import Job


class ReplayFailed(Retryable):
    """Jobs could not be done. What they wrote is under an attempt that nobody will read; a new lease may do better."""


class ReplayStalled(ReplayFailed):
    """Nothing has come of a run for so long that it is given up."""


class SessionLost(Fatal):
    """What the runner works with is gone, and all that it is asked for from now on fails. Only a new process helps."""


class JobRunner(Protocol):
    """Does jobs."""

    def check(self, job: Job) -> None:
        """Raise `IncompatibleJob` if a job can't be done just as its owner would."""
        ...

    def run(self, jobs: Sequence[Job], on_progress: Callable[[float], None]) -> Mapping[Job, JobResult]:
        """Do some jobs of one dataset, each of which the caller has leased; their results.

        When this returns, all segments and all rows of the results are in the store, the rows of kind `RESULT` as the
        last of each job. Raises if that can't be had for all of them; some may be done all the same. `on_progress` is told
        now and then, from the calling thread, which part is done, from 0 to 1; what it raises ends the run. After
        `SessionLost` there is no use in another call.
        """
        ...
