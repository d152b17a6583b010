"""Jobs over HTTP: lists and shows them with the read token, pauses, resumes and cancels them with the admin token.

A job has the same JSON as in `strandline job status --output json`.
"""

import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

import orjson

from strandline.jobs.board import NoSuchJob
from strandline.jobs.transitions import InvalidTransition
from strandline.node.bulk.reports import JobStatus, JobSummary
from strandline.node.http.errors import Refused
from strandline.node.http.parameters import parameters_of_url
from strandline.node.http.requests import Request
from strandline.node.http.responses import Response
from strandline.node.http.routes import Access, Route
from strandline.node.job_watch.figures import JobsFigures
from strandline.store.bulk_jobs import Wanted

PATH = "/api/v1/jobs"
RATES_PATH = "/api/v1/strandline/job-rates"
MAX_JOBS = 1000
_DEFAULT_JOBS = 200
_JOB_ID = re.compile(r"[0-9A-Za-z._-]{1,100}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ListedJobs:
    """Jobs of a dataset, in the order of planning, as of `looked_at`."""

    dataset: str
    looked_at: int | None
    jobs: tuple[JobSummary, ...]


@dataclass(frozen=True, slots=True)
class ChangedJob:
    """A job after an operator's request. `settled`: whether it has taken effect. `note`: what still has to happen."""

    settled: bool
    note: str
    job: JobStatus


class WatchedJobs(Protocol):
    """Reads and changes the jobs of a dataset; implemented by `JobsWatch`."""

    def figures(self) -> JobsFigures:
        """The figures of the last read. Never waits."""
        ...

    async def jobs(self) -> JobsFigures:
        """All jobs, at most a few seconds old."""
        ...

    async def status(self, job: str) -> JobStatus:
        """The current status of a job. Raises `NoSuchJob`."""
        ...

    async def request_stop(self, job: str, wanted: Wanted) -> JobStatus:
        """Request that a job is paused or cancelled; return its status. Raises `NoSuchJob` and `InvalidTransition`."""
        ...

    async def resume(self, job: str) -> JobStatus:
        """Resume a job, and return its status. Raises `NoSuchJob` and `InvalidTransition`."""
        ...


class JobsApi:
    """The HTTP handlers. Used by one event loop."""

    def __init__(self, watch: WatchedJobs, dataset: str) -> None:
        self._watch, self._dataset = watch, dataset

    async def listed(self, request: Request) -> Response:
        """`limit`: up to this number of jobs; those that have not ended first, then the newest."""
        limit = parameters_of_url(request).limit(MAX_JOBS, default=_DEFAULT_JOBS)
        figures = await self._watch.jobs()
        jobs = chosen(figures, limit)
        left_out = len(figures.jobs) - len(jobs)
        warnings = [f"results truncated due to limit: {left_out} older jobs that have ended are not listed"]
        return _answer(ListedJobs(self._dataset, figures.looked_at, jobs), warnings if left_out else ())

    async def rates(self, _request: Request) -> Response:
        """Records and errors per second of all jobs in the last hour, for the page's plot."""
        points = [(one.time, round(one.records, 2), round(one.errors, 2)) for one in self._watch.figures().rates()]
        return _answer({"points": points})

    async def status(self, request: Request) -> Response:
        """The status of a job."""
        return _answer(await _found(self._watch.status(_job(request))))

    async def pause(self, request: Request) -> Response:
        """Pause a job."""
        return await self._stop(_job(request), Wanted.PAUSED, "pause")

    async def cancel(self, request: Request) -> Response:
        """Cancel a job."""
        return await self._stop(_job(request), Wanted.CANCELLED, "cancel")

    async def resume(self, request: Request) -> Response:
        """Resume a job."""
        job = await _found(self._watch.resume(_job(request)))
        return _changed(job, "Workers continue the job. If none is running, start one: `strandline job work`.")

    async def _stop(self, name: str, wanted: Wanted, verb: str) -> Response:
        job = await _found(self._watch.request_stop(name, wanted))
        note = (
            f"The job is {wanted} once its workers have released their parts, which takes seconds. If no worker is "
            f"running, run `strandline job {verb} {name}`."
        )
        return _changed(job, note if job.wanted else f"The job is {job.state}. Nothing more of it lands.")


def jobs_routes(watch: WatchedJobs, dataset: str) -> tuple[Route, ...]:
    """The routes of jobs."""
    api = JobsApi(watch, dataset)
    return (
        Route(("GET",), PATH, api.listed, Access.READ),
        Route(("GET",), RATES_PATH, api.rates, Access.READ),
        Route(("GET",), f"{PATH}/{{job}}", api.status, Access.READ),
        Route(("POST",), f"{PATH}/{{job}}/pause", api.pause, Access.ADMIN),
        Route(("POST",), f"{PATH}/{{job}}/resume", api.resume, Access.ADMIN),
        Route(("POST",), f"{PATH}/{{job}}/cancel", api.cancel, Access.ADMIN),
    )


def chosen(figures: JobsFigures, limit: int) -> tuple[JobSummary, ...]:
    """Up to `limit` jobs, in the order of planning. Jobs that have not ended have priority, then newer ones."""
    newest_first = sorted(figures.jobs.values(), key=lambda one: (one.row.created_at, one.row.job), reverse=True)
    wanted = sorted(newest_first, key=lambda one: one.is_settled)[:limit]
    return tuple(one.summary for one in sorted(wanted, key=lambda one: (one.row.created_at, one.row.job)))


def _job(request: Request) -> str:
    written = request.wildcard("job")
    if not _JOB_ID.fullmatch(written):
        raise Refused(404, "not_found", f"{written[:50]!r} is not a valid job id", remedy=f"GET {PATH} lists them")
    return written


async def _found(request: Awaitable[JobStatus]) -> JobStatus:
    try:
        return await request
    except NoSuchJob as error:
        raise Refused(404, "not_found", error.message, remedy=f"GET {PATH} lists them") from error
    except InvalidTransition as error:
        raise Refused(409, "conflict", error.message, remedy=error.remedy) from error


def _changed(job: JobStatus, note: str) -> Response:
    settled = not job.wanted
    return _answer(ChangedJob(settled, note, job), status=200 if settled else 202)


def _answer(data: object, warnings: Sequence[str] = (), *, status: int = 200) -> Response:
    envelope = {"status": "success", "data": data, **({"warnings": warnings} if warnings else {})}
    return Response(orjson.dumps(envelope, option=orjson.OPT_NON_STR_KEYS), status)
