"""The states of a bulk job and their transitions: pure functions over jobs and their parts.

    planned -> running -> completing -> done
    running -> failed            every part was tried, and some have failed permanently
    planned -> failed            no worker started the job within an hour of its due time
    running -> broken            the circuit breaker: too many records failed
    planned, running -> paused   an operator requested it, and no part is leased any longer
    paused, broken, failed -> running    resume
    planned, running, paused, broken -> cancelled    an operator requested it, or the job expired

A job that is done has its report. A failed or cancelled job gets its report once its event is delivered, which workers
have to do until then, see `is_announced`.

These functions only compute the next row. The caller stores it with a compare-and-set.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from strandline.errors import ExitCode, Fatal
from strandline.jobs.breaker import BreakerRules, breaks, reason_of
from strandline.jobs.counts import Counts
from strandline.jobs.ordering import is_blocked
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart, Wanted
from strandline.store.jobs import JobState

ENDED = frozenset({BulkJobState.DONE, BulkJobState.FAILED, BulkJobState.CANCELLED})
_IDLE = frozenset({BulkJobState.PAUSED, BulkJobState.BROKEN})
_UNSUCCESSFUL = frozenset({BulkJobState.FAILED, BulkJobState.CANCELLED})
OVERDUE_MS = 3_600_000


class InvalidTransition(Fatal):
    """The job is in a state that does not permit this transition."""

    exit_code = ExitCode.USAGE


def begin(job: BulkJob, now: int) -> BulkJob:
    """Start a job before a worker leases its first part. A job that is not due yet, or not planned, is unchanged. A job
    that has been due for an hour fails, because its effects might do harm later. An operator may resume it.
    """
    if job.state is not BulkJobState.PLANNED or job.wanted or now < job.due_at:
        return job
    if job.due_at and now - job.due_at >= OVERDUE_MS:
        due = datetime.fromtimestamp(job.due_at / 1000, UTC)
        reason = f"it was due at {due:%Y-%m-%dT%H:%M:%SZ}, and no worker began it within an hour"
        return _changed(job, BulkJobState.FAILED, now, reason=reason)
    return _changed(job, BulkJobState.RUNNING, now)


def takes_parts(job: BulkJob) -> bool:
    """Whether workers may lease parts of a job."""
    return job.state is BulkJobState.RUNNING and not job.wanted


def has_work(job: BulkJob, now: int) -> bool:
    """Whether workers have work to do for a job now, or will have once another worker has finished a part."""
    if job.state is BulkJobState.PLANNED:
        return now >= job.due_at
    return job.state in (BulkJobState.RUNNING, BulkJobState.COMPLETING) or (job.state in _IDLE and bool(job.wanted))


def next_due(jobs: Iterable[BulkJob], now: int) -> int | None:
    """When the next job that is not due yet will be; None without such a job."""
    later = [job.due_at for job in jobs if job.state is BulkJobState.PLANNED and not job.wanted and job.due_at > now]
    return min(later, default=None)


def request_stop(job: BulkJob, wanted: Wanted, now: int) -> BulkJob:
    """Record that an operator wants a job paused or cancelled. `complete_stop` does it once no part is leased. Raises
    `InvalidTransition` for a job that has ended or is completing.
    """
    if job.state in ENDED or job.state is BulkJobState.COMPLETING:
        raise InvalidTransition(f"{job.name} is {job.state}, and can't be {wanted}", remedy="Nothing is left to stop")
    if wanted is Wanted.PAUSED and job.state in _IDLE:
        return job
    # A pause does not replace a cancellation.
    if job.wanted in (wanted, Wanted.CANCELLED):
        return job
    return replace(job, wanted=wanted, version=job.version + 1, changed_at=now)


def complete_stop(job: BulkJob, parts: Iterable[BulkPart], now: int) -> BulkJob:
    """Pause or cancel a job as requested, once no part is leased."""
    if not job.wanted or any(part.state is JobState.LEASED for part in parts):
        return job
    state = BulkJobState.PAUSED if job.wanted is Wanted.PAUSED else BulkJobState.CANCELLED
    reason = _expired(job) if state is BulkJobState.CANCELLED and _is_expired(job, now) else f"{state} by an operator"
    return _changed(replace(job, wanted=Wanted.NOTHING), state, now, reason=reason)


def resume(job: BulkJob, now: int) -> BulkJob:
    """Resume a paused, broken or failed job. The breaker's counts start at zero. A running job is unchanged, and a job
    that is not due yet becomes planned. Raises `InvalidTransition` for any other.
    """
    if job.state in (BulkJobState.PLANNED, BulkJobState.RUNNING) and not job.wanted:
        return job
    if job.wanted is Wanted.CANCELLED or job.state not in (*_IDLE, BulkJobState.FAILED, BulkJobState.RUNNING):
        what = "being cancelled" if job.wanted is Wanted.CANCELLED else job.state
        raise InvalidTransition(f"{job.name} is {what}, and can't be resumed", remedy="Plan a new job")
    resumed = replace(job, wanted=Wanted.NOTHING, window=job.window + 1, report="")
    return _changed(resumed, BulkJobState.PLANNED if now < job.due_at else BulkJobState.RUNNING, now)


def reopened(part: BulkPart) -> BulkPart:
    """A permanently failed part as pending again, after a resume. Any other part is unchanged."""
    if part.state is not JobState.FAILED:
        return part
    return replace(part, state=JobState.PENDING, worker="", failures=0, reason="")


def trip_breaker(job: BulkJob, window: Counts, rules: BreakerRules, now: int) -> BulkJob:
    """Break a running job if too many of its records have failed since it was started or resumed."""
    if job.state is not BulkJobState.RUNNING or not breaks(window, rules):
        return job
    return _changed(job, BulkJobState.BROKEN, now, reason=reason_of(window, rules))


def conclude(job: BulkJob, parts: Sequence[BulkPart], now: int) -> BulkJob:
    """Make a running job completing or failed once no part is left to run. Any other job is unchanged.

    An incomplete list of parts, by the number in the plan, decides nothing. A requested stop has precedence, see
    `complete_stop`. An ordered job fails with its first failed part.
    """
    if job.state is not BulkJobState.RUNNING or job.wanted or len(parts) != job.parts:
        return job
    if any(part.state in (JobState.PENDING, JobState.LEASED) for part in parts) and not is_blocked(job, parts):
        return job
    failed = [part for part in parts if part.state is JobState.FAILED]
    if not failed:
        return _changed(job, BulkJobState.COMPLETING, now)
    reason = f"{len(failed)} of {job.parts} parts failed; part {failed[0].part}: {failed[0].reason}"
    return _changed(job, BulkJobState.FAILED, now, reason=reason)


def complete(job: BulkJob, report: str, now: int, *, reason: str = "") -> BulkJob:
    """Make a completing job done, once control sample and event are written; `reason` names what was given up."""
    if job.state is not BulkJobState.COMPLETING:
        raise InvalidTransition(f"{job.name} is {job.state}, and can't be completed")
    return _changed(replace(job, report=report), BulkJobState.DONE, now, reason=reason)


def is_announced(job: BulkJob) -> bool:
    """Whether the event of a failed or cancelled job is written; true for jobs in other states."""
    return job.state not in _UNSUCCESSFUL or bool(job.report)


def announced(job: BulkJob, report: str, *, undelivered: str = "") -> BulkJob:
    """Add the report of a failed or cancelled job, once its event is written; `undelivered` names what is missing."""
    reason = f"{job.reason}; {undelivered}" if undelivered else job.reason
    return replace(job, report=report, reason=reason, version=job.version + 1)


def expires_at(job: BulkJob) -> int | None:
    """When a paused or broken job will be cancelled; None for any other job, and for one that does not expire."""
    if job.state not in _IDLE or not job.expires_after:
        return None
    return job.idle_since + job.expires_after


def expire(job: BulkJob, now: int) -> BulkJob:
    """Cancel a job that has been paused or broken for too long. Any other job is unchanged. For a broken job the
    cancellation is only requested, see `complete_stop`: workers may still have parts of it without knowing its state.
    """
    if not _is_expired(job, now):
        return job
    if job.state is BulkJobState.BROKEN:
        return request_stop(job, Wanted.CANCELLED, now)
    return _changed(job, BulkJobState.CANCELLED, now, reason=_expired(job))


def _is_expired(job: BulkJob, now: int) -> bool:
    at = expires_at(job)
    return at is not None and now >= at


def _expired(job: BulkJob) -> str:
    return f"cancelled after {job.expires_after / 86_400_000:g} days as {job.state}, see jobs.expiry"


def _changed(job: BulkJob, state: BulkJobState, now: int, *, reason: str = "") -> BulkJob:
    return replace(
        job,
        state=state,
        version=job.version + 1,
        changed_at=now,
        idle_since=now if state in _IDLE else 0,
        reason=reason,
    )
