"""The states of a bulk job, and what leads from one to the next: pure functions over jobs and their parts.

    planned -> running -> completing -> done
    running -> failed            every part was tried, and some have failed for good
    planned -> failed            it was due at a time, and no worker began it within an hour
    running -> broken            the circuit breaker: too many records fail
    planned, running -> paused   an operator wants it, and no part is leased any more
    paused, broken, failed -> running    resume
    planned, running, paused, broken -> cancelled    an operator wants it, or nobody resumed it in time

A job that is done has its report. One that has failed or was cancelled gets its report when its event was delivered:
until then workers have that left to do, see `is_announced`.

The store's compare-and-set makes a transition happen; these say only what it is.
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
    """A job is in a state in which this can't be done."""

    exit_code = ExitCode.USAGE


def begin(job: BulkJob, now: int) -> BulkJob:
    """A worker takes its first part. A job that is not due yet, or is not planned, stays as it is. One that has been
    due for an hour fails: what was to happen at that time may do harm later. An operator may resume it all the same.
    """
    if job.state is not BulkJobState.PLANNED or job.wanted or now < job.due_at:
        return job
    if job.due_at and now - job.due_at >= OVERDUE_MS:
        due = datetime.fromtimestamp(job.due_at / 1000, UTC)
        reason = f"it was due at {due:%Y-%m-%dT%H:%M:%SZ}, and no worker began it within an hour"
        return _changed(job, BulkJobState.FAILED, now, reason=reason)
    return _changed(job, BulkJobState.RUNNING, now)


def takes_parts(job: BulkJob) -> bool:
    """Whether workers may take parts of a job."""
    return job.state is BulkJobState.RUNNING and not job.wanted


def has_work(job: BulkJob, now: int) -> bool:
    """Whether workers have something to do about a job now, or will have when others are done with a part."""
    if job.state is BulkJobState.PLANNED:
        return now >= job.due_at
    return job.state in (BulkJobState.RUNNING, BulkJobState.COMPLETING) or (job.state in _IDLE and bool(job.wanted))


def next_due(jobs: Iterable[BulkJob], now: int) -> int | None:
    """When the next job that is planned for later is due; None if there is none."""
    later = [job.due_at for job in jobs if job.state is BulkJobState.PLANNED and not job.wanted and job.due_at > now]
    return min(later, default=None)


def request_stop(job: BulkJob, wanted: Wanted, now: int) -> BulkJob:
    """An operator wants a job paused or cancelled. It is so once no part is leased any more, see `complete_stop`. Raises
    `InvalidTransition` for a job that has ended, or is about to.
    """
    if job.state in ENDED or job.state is BulkJobState.COMPLETING:
        raise InvalidTransition(f"{job.name} is {job.state}, and can't be {wanted}", remedy="Nothing is left to stop")
    if wanted is Wanted.PAUSED and job.state in _IDLE:
        return job
    # A job that is to be cancelled stays so.
    if job.wanted in (wanted, Wanted.CANCELLED):
        return job
    return replace(job, wanted=wanted, version=job.version + 1, changed_at=now)


def complete_stop(job: BulkJob, parts: Iterable[BulkPart], now: int) -> BulkJob:
    """What an operator wanted holds now, if no part is leased any more."""
    if not job.wanted or any(part.state is JobState.LEASED for part in parts):
        return job
    state = BulkJobState.PAUSED if job.wanted is Wanted.PAUSED else BulkJobState.CANCELLED
    reason = _expired(job) if state is BulkJobState.CANCELLED and _is_expired(job, now) else f"{state} by an operator"
    return _changed(replace(job, wanted=Wanted.NOTHING), state, now, reason=reason)


def resume(job: BulkJob, now: int) -> BulkJob:
    """Go on with a job that was paused, broken or has failed. The breaker counts anew. A job that runs stays as it is,
    and one that is not due yet is planned again. Raises `InvalidTransition` for any other.
    """
    if job.state in (BulkJobState.PLANNED, BulkJobState.RUNNING) and not job.wanted:
        return job
    if job.wanted is Wanted.CANCELLED or job.state not in (*_IDLE, BulkJobState.FAILED, BulkJobState.RUNNING):
        what = "being cancelled" if job.wanted is Wanted.CANCELLED else job.state
        raise InvalidTransition(f"{job.name} is {what}, and can't be resumed", remedy="Plan a new job")
    resumed = replace(job, wanted=Wanted.NOTHING, window=job.window + 1, report="")
    return _changed(resumed, BulkJobState.PLANNED if now < job.due_at else BulkJobState.RUNNING, now)


def reopened(part: BulkPart) -> BulkPart:
    """A part that has failed for good, to be tried again after a resume. Any other stays as it is."""
    if part.state is not JobState.FAILED:
        return part
    return replace(part, state=JobState.PENDING, worker="", failures=0, reason="")


def trip_breaker(job: BulkJob, window: Counts, rules: BreakerRules, now: int) -> BulkJob:
    """Break a job that runs if too many of its records failed since it was started or resumed."""
    if job.state is not BulkJobState.RUNNING or not breaks(window, rules):
        return job
    return _changed(job, BulkJobState.BROKEN, now, reason=reason_of(window, rules))


def conclude(job: BulkJob, parts: Sequence[BulkPart], now: int) -> BulkJob:
    """A job of which nothing is left to do: about to be completed, or failed. Any other stays as it is.

    The number of parts is compared with the plan's: a list that lacks some says nothing. What an operator wants holds
    first, see `complete_stop`. A job whose parts run in order has failed with the first of them.
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
    """The report is written, and so is everything else that belongs to the end of a job; `reason` says what is not."""
    if job.state is not BulkJobState.COMPLETING:
        raise InvalidTransition(f"{job.name} is {job.state}, and was to be completed")
    return _changed(replace(job, report=report), BulkJobState.DONE, now, reason=reason)


def is_announced(job: BulkJob) -> bool:
    """Whether nobody has to be told any more that a job has failed or was cancelled."""
    return job.state not in _UNSUCCESSFUL or bool(job.report)


def announced(job: BulkJob, report: str, *, undelivered: str = "") -> BulkJob:
    """The event of a job that has failed or was cancelled is written; `undelivered` says what is not."""
    reason = f"{job.reason}; {undelivered}" if undelivered else job.reason
    return replace(job, report=report, reason=reason, version=job.version + 1)


def expires_at(job: BulkJob) -> int | None:
    """When a job that is paused or broken will be cancelled; None for any other, and for one that may stay so."""
    if job.state not in _IDLE or not job.expires_after:
        return None
    return job.idle_since + job.expires_after


def expire(job: BulkJob, now: int) -> BulkJob:
    """Cancel a job that was paused or broken for too long. Any other stays as it is. One that is broken is to be
    cancelled first, see `complete_stop`: workers that don't know yet may still have parts of it.
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
