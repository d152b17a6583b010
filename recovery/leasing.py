"""The states of a replay job, and what leads from one to the next: pure functions over jobs.

A job is pending, leased to a worker until some time, done, or failed for good. Each lease has an epoch of its own. The
store's compare-and-set makes a transition happen (see `job_board`); these say only what it is.
"""

from dataclasses import dataclass, replace

from strandline.errors import Fatal
from strandline.store.jobs import Job, JobState

MOST_REASON = 1_000
"""So many characters of a reason are kept: it stands in a row of the store, and a traceback of Spark's is endless."""

_WITH_OTHERS = "read with others: "


class LeaseLost(Fatal):
    """The lease is not the worker's any more: somebody else may have the job by now.

    Final for this lease, since the same call never works again, but for nothing else: the worker leaves the job and
    takes another. It never ends a process.
    """


@dataclass(frozen=True, slots=True)
class LeasePolicy:
    """How long a lease is, how often it is renewed, in milliseconds, and how often a job may fail before its plan
    stops.
    """

    lease_ms: int = 120_000
    renew_ms: int = 20_000
    failures_allowed: int = 3

    def __post_init__(self) -> None:
        if not 0 < self.renew_ms < self.lease_ms:
            raise ValueError(f"a lease of {self.lease_ms} ms can't be renewed every {self.renew_ms} ms")
        if self.failures_allowed < 0:
            raise ValueError(f"{self.failures_allowed} failures were to be allowed")


def nobody_is_gone(_worker: str) -> bool:
    """For those who can't tell: a worker is given up when its lease has run out."""
    return False


def is_leasable(job: Job) -> bool:
    """Whether a worker may take a job. One with a lost lease is taken back first."""
    return job.state is JobState.PENDING


def sign_of_life(job: Job) -> tuple[str, int, str, int, int]:
    """What changes with each renewal of a lease, whatever its holder's clock shows. A worker of the version before does
    not count its renewals, but each has another time.
    """
    return *lease_of(job), job.renewals, job.leased_until


def is_open(job: Job) -> bool:
    """Whether something is still to be done about a job."""
    return job.state in (JobState.PENDING, JobState.LEASED)


def lease(job: Job, worker: str, now: int, policy: LeasePolicy) -> Job:
    """Give a pending job to a worker, under a new epoch."""
    if not is_leasable(job):
        raise ValueError(f"{told(job)} is {job.state}, and was to be leased to {worker}")
    return replace(
        job, state=JobState.LEASED, epoch=job.epoch + 1, worker=worker, leased_until=now + policy.lease_ms, reason=""
    )


def renew(job: Job, held: Job, now: int, policy: LeasePolicy) -> Job:
    """Let a lease last from now on. `held` is the job as its worker has it. Raises `LeaseLost`."""
    _require_held(job, held)
    # A clock that was set back must not make a lease shorter than somebody may have been told.
    return replace(job, leased_until=max(job.leased_until, now + policy.lease_ms), renewals=job.renewals + 1)


def finish(job: Job, held: Job) -> Job:
    """The work is done, and all of it is in the store. Raises `LeaseLost`."""
    _require_held(job, held)
    return replace(job, state=JobState.DONE, leased_until=0, reason="")


def fail(job: Job, held: Job, reason: str, policy: LeasePolicy) -> Job:
    """The work failed: to be tried again, or past the failures allowed not any more. Raises `LeaseLost`."""
    _require_held(job, held)
    return counted(job, reason, policy)


def release(job: Job, held: Job, reason: str = "") -> Job:
    """The worker leaves the job, through no fault of the job's: that is no failure of it. Raises `LeaseLost`."""
    _require_held(job, held)
    return replace(job, state=JobState.PENDING, worker="", leased_until=0, reason=_bounded(job, reason))


def with_others(reason: str) -> str:
    """The reason to release a job with whose wave something is wrong, though perhaps not with the job. It stays with
    the job, so that whoever takes it next knows, also after its worker has ended.
    """
    return _WITH_OTHERS + reason


def was_given_up_with_others(job: Job) -> bool:
    """Whether a job was released for such a reason, and not leased since."""
    return job.state is JobState.PENDING and job.reason.startswith(_bounded(job, _WITH_OTHERS))


def take_back(job: Job, policy: LeasePolicy) -> Job:
    """A lease was lost. That is a failure: a job that ends its worker every time must not be tried for ever."""
    if job.state is not JobState.LEASED:
        raise ValueError(f"{told(job)} is {job.state}, and was to be taken back from {job.worker}")
    return counted(job, f"its worker was lost: {job.worker}", policy)


def is_same_lease(job: Job, held: Job) -> bool:
    """Whether a job is still leased as a worker has it, though perhaps for another time."""
    return job.state is JobState.LEASED and lease_of(job) == lease_of(held)


def lease_of(job: Job) -> tuple[str, int, str]:
    """What tells leases apart."""
    return job.plan, job.epoch, job.worker


def told(job: Job) -> str:
    """A job, in a message."""
    return f"the job for bucket {job.bucket} of {job.shard}, offsets [{job.start}, {job.end}),"


def _require_held(job: Job, held: Job) -> None:
    if not is_same_lease(job, held):
        raise LeaseLost(
            f"{told(held)} is no longer leased to {held.worker} under epoch {held.epoch}: it is {job.state} under epoch"
            f" {job.epoch}"
        )


def counted(job: Job, reason: str, policy: LeasePolicy) -> Job:
    """A job that is to be done again, unless it has failed too often by now."""
    failures = job.failures + 1
    is_final = failures > policy.failures_allowed
    return replace(
        job,
        state=JobState.FAILED if is_final else JobState.PENDING,
        worker=job.worker if is_final else "",
        leased_until=0,
        failures=failures,
        reason=_bounded(job, reason),
    )


def _bounded(job: Job, reason: str) -> str:
    return f"offsets [{job.start}, {job.end}): {reason}"[:MOST_REASON] if reason else ""
