"""Reads a dataset's jobs from the store: periodically for metrics and the page's plot, and for clients' requests."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace

import structlog

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.jobs.board import BulkBoard
from strandline.jobs.transitions import ENDED, expire
from strandline.node.bulk.changing import request_job_stop, resume_job
from strandline.node.bulk.reports import JobStatus, JobSummary
from strandline.node.job_watch.figures import JobsFigures, updated_figures
from strandline.node.job_watch.store_thread import StoreThread
from strandline.node.settings.sections import Settings
from strandline.node.shard.assembling import open_store
from strandline.node.throttled_warning import ThrottledWarning
from strandline.store.bulk_jobs import BulkJob, Wanted
from strandline.store.protocol import StoreUnavailable

JobsOpener = Callable[[], AbstractContextManager[BulkBoard]]

_LOG = structlog.get_logger(__name__)
POLL_INTERVAL_S = 15.0
_CACHE_S = 2.0
# Reading large jobs takes at most this share of the time, unless a single read takes seconds.
_MAX_LOAD = 0.1
_MAX_PAUSE_S = 30.0


@contextmanager
def opened_jobs(settings: Settings, environ: Mapping[str, str], clock: Clock) -> Iterator[BulkBoard]:
    """The board of the dataset's jobs, to read and change them, but not to work on them."""
    folder = settings.shard.data_folder(environ)
    if settings.store.kind == "sqlite" and not (path := settings.store.sqlite_path(folder)).exists():
        raise StoreUnavailable(f"there is no store in {path} yet", remedy="A shard or a job creates it")
    with closing(open_store(settings, folder, clock)) as store:
        yield BulkBoard(store, settings.dataset.name, clock)


class JobsWatch:
    """The jobs of one dataset. Used by one event loop, except for `figures`, which any thread may call."""

    def __init__(
        self,
        opener: JobsOpener,
        store: str,
        clock: Clock,
        *,
        interval_s: float = POLL_INTERVAL_S,
        cache_s: float = _CACHE_S,
        timeout_s: float = 10.0,
    ) -> None:
        """`store` is the store's name in messages. The result of a read is cached for `cache_s`."""
        self._clock, self._interval_s, self._cache_s = clock, interval_s, cache_s
        self._thread: StoreThread[BulkBoard] = StoreThread(opener, store, timeout_s=timeout_s)
        self._figures = JobsFigures()
        self._fresh_until = float("-inf")
        self._pause_s = 0.0
        self._polling: asyncio.Task[JobsFigures] | None = None
        self._watch_task: asyncio.Task[None] | None = None
        self._warning = ThrottledWarning("bulk jobs could not be read", "all", clock)

    def start(self) -> None:
        """Start polling."""
        self._watch_task = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self) -> None:
        """Stop polling, and close the store."""
        for task in (self._watch_task, self._polling):
            if task is not None:
                task.cancel()
        await asyncio.to_thread(self._thread.close)

    def figures(self) -> JobsFigures:
        """The figures of the last read. Never waits."""
        return self._figures

    async def jobs(self) -> JobsFigures:
        """All jobs, at most a few seconds old. Raises the error if they can't be read."""
        if self._clock.monotonic() < self._fresh_until:
            return self._figures
        if self._polling is None or self._polling.done():
            self._polling = asyncio.get_running_loop().create_task(self._poll())
            # Retrieves the exception even if all callers are gone. `_poll` has logged it.
            self._polling.add_done_callback(lambda task: task.cancelled() or task.exception())
        # Shielded, so that a client that disconnects does not cancel the read for others.
        return await asyncio.shield(self._polling)

    async def status(self, job: str) -> JobStatus:
        """The current status of a job. Raises `NoSuchJob`, and the error if it can't be read."""

        def read(board: BulkBoard) -> JobStatus:
            found = board.job(job)
            return JobStatus.of(found, board.parts(found))

        return await self._thread.call(read)

    async def request_stop(self, job: str, wanted: Wanted) -> JobStatus:
        """Request that a job is paused or cancelled; return its status. Raises `NoSuchJob` and `InvalidTransition`."""
        return await self._changed(lambda board: request_job_stop(board, job, wanted, self._clock))

    async def resume(self, job: str) -> JobStatus:
        """Resume a job, and return its status. Raises `NoSuchJob` and `InvalidTransition`."""
        return await self._changed(lambda board: resume_job(board, job, self._clock))

    async def _changed(self, change: Callable[[BulkBoard], JobStatus]) -> JobStatus:
        try:
            return await self._thread.call(change)
        finally:
            self._fresh_until = float("-inf")

    async def _poll(self) -> JobsFigures:
        before, clock = self._figures, self._clock
        if before.began_at is None:
            before = self._figures = replace(before, began_at=clock.now_ms())

        def read(board: BulkBoard) -> tuple[list[tuple[BulkJob, JobSummary]], float]:
            # Excludes the time for opening the store and for waiting for other calls.
            began = clock.monotonic()
            return read_jobs(board, before, clock), clock.monotonic() - began

        try:
            rows, took_s = await self._thread.call(read)
        except StrandlineError as error:
            self._figures = replace(self._figures, failures=self._figures.failures + 1)
            self._warning.about(error)
            raise
        self._warning.is_over()
        now = clock.monotonic()
        self._figures = updated_figures(self._figures, rows, clock.now_ms(), now)
        self._pause_s = min(took_s / _MAX_LOAD, _MAX_PAUSE_S)
        self._fresh_until = now + max(self._cache_s, self._pause_s)
        return self._figures

    async def _watch(self) -> None:
        while True:
            try:
                await self.jobs()
            except StrandlineError:
                pass  # Counted and logged by `_poll`.
            except Exception:  # noqa: BLE001 - logged completely, and the next poll may succeed
                _LOG.exception("reading bulk jobs failed")
            await asyncio.sleep(max(self._interval_s, self._pause_s))


def read_jobs(board: BulkBoard, before: JobsFigures, clock: Clock) -> list[tuple[BulkJob, JobSummary]]:
    """All jobs with their counts, in the order of planning. The parts of ended jobs that have not changed are not read
    again. Expired jobs are cancelled here, because there may be no worker to do it.
    """
    found: list[tuple[BulkJob, JobSummary]] = []
    for read in board.jobs():
        job = board.change(read, lambda one: expire(one, clock.now_ms()))
        known = before.jobs.get(job.job)
        if job.state in ENDED and known is not None and known.row == job:
            found.append((job, known.summary))
        else:
            found.append((job, JobSummary.of_job(job, board.parts(job))))
    return found
