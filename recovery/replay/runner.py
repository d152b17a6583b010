"""The interface of what runs replay jobs: Spark, or the in-memory counterpart."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from strandline.errors import Fatal, Retryable
from strandline.recovery.replay.job_result import JobResult
from strandline.store.jobs import Job


class ReplayFailed(Retryable):
    """Jobs could not be done. What they wrote has an attempt that no row will reference. A new lease may succeed."""


class ReplayStalled(ReplayFailed):
    """A run made no progress for so long that it was cancelled."""


class SessionLost(Fatal):
    """The runner's session is gone, and all further calls will fail. Only a new process helps."""


class JobRunner(Protocol):
    """Runs jobs."""

    def check(self, job: Job) -> None:
        """Raise `IncompatibleJob` if a job can't be done exactly as its owner would."""
        ...

    def run(self, jobs: Sequence[Job], on_progress: Callable[[float], None]) -> Mapping[Job, JobResult]:
        """Run some jobs of one dataset, each of which the caller has leased; return their results.

        When this returns, all segments and all rows of the results are in the store, and each job's row of kind
        `RESULT` was written last. Raises if that is impossible for all of the jobs; some may be done nevertheless.
        `on_progress` is called occasionally, in the calling thread, with the share that is done, from 0 to 1. An
        exception that it raises ends the run. After `SessionLost`, further calls will fail.
        """
        ...
