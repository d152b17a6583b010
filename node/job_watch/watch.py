"""Looks at a dataset's jobs: in the background for metrics and the page's plot, and when a client asks."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace

import structlog

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.jobs.board import BulkBoard
from strandline.jobs.transitions import ENDED, expire
from strandline.node.bulk.changing import ask_to_stop, resume_job
from strandline.node.bulk.reports import JobStatus, JobSummary
from strandline.node.job_watch.figures import JobsFigures, observed
from strandline.node.job_watch.store_thread import StoreThread
from strandline.node.settings.sections import Settings
from strandline.node.shard.assembling import open_store
from strandline.node.throttled_warning import ThrottledWarning
from strandline.store.bulk_jobs import BulkJob, Wanted
from strandline.store.protocol import StoreUnavailable

JobsOpener = Callable[[], AbstractContextManager[BulkBoard]]

_LOG = structlog.get_logger(__name__)
LOOK_EVERY_S = 15.0
_REMEMBER_S = 2.0
# Looks at large jobs may take this share of the time, and more only if they take seconds.
_SHARE = 0.1
_LONGEST_REST_S = 30.0


@contextmanager
def opened_jobs(settings: Settings, environ: Mapping[str, str], clock: Clock) -> Iterator[BulkBoard]:
    """The jobs of the settings' dataset, to be looked at and changed, not worked on."""
    folder = settings.shard.data_folder(environ)
    if settings.store.kind == "sqlite" and not (path := settings.store.sqlite_path(folder)).exists():
        raise StoreUnavailable(f"there is no store in {path} yet", remedy="A shard or a job creates it")
    with closing(open_store(settings, folder, clock)) as store:
        yield BulkBoard(store, settings.dataset.name, clock)


class JobsWatch:
    """The jobs of one dataset. Its methods belong to one event loop, but for `figures`."""

    def __init__(
        self,
        opener: JobsOpener,
        store: str,
        clock: Clock,
        *,
        every_s: float = LOOK_EVERY_S,
        remember_s: float = _REMEMBER_S,
        patience_s: float = 10.0,
    ) -> None:
        """`store` is the store's name for people. What a look found is given to all who ask within `remember_s`."""
        self._clock, self._every_s, self._remember_s = clock, every_s, remember_s
        self._thread: StoreThread[BulkBoard] = StoreThread(opener, store, patience_s=patience_s)
        self._figures = JobsFigures()
        self._fresh_until = float("-inf")
        self._rest_s = 0.0
        self._looking: asyncio.Task[JobsFigures] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._warning = ThrottledWarning("bulk jobs could not be looked up", "all", clock)

    def start(self) -> None:
        """Begin to look every now and then."""
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self) -> None:
        """Look no more."""
        for task in (self._watching, self._looking):
            if task is not None:
                task.cancel()
        await asyncio.to_thread(self._thread.close)

    def figures(self) -> JobsFigures:
        """What is known. Never waits."""
        return self._figures

    async def jobs(self) -> JobsFigures:
        """All jobs, as they were at most some seconds ago. Raises what keeps them from being read."""
        if self._clock.monotonic() < self._fresh_until:
            return self._figures
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())
            # All who waited may be gone when it fails; the look has logged why.
            self._looking.add_done_callback(lambda look: look.cancelled() or look.exception())
        # A client that goes away does not end a look that others wait for.
        return await asyncio.shield(self._looking)

    async def status(self, job: str) -> JobStatus:
        """One job, as it is now. Raises `NoSuchJob`, and what keeps it from being read."""

        def read(board: BulkBoard) -> JobStatus:
            found = board.job(job)
            return JobStatus.of(found, board.parts(found))

        return await self._thread.call(read)

    async def ask_to_stop(self, job: str, wanted: Wanted) -> JobStatus:
        """Have a job paused or cancelled; how it stands then. Raises `NoSuchJob` and `InvalidTransition`."""
        return await self._changed(lambda board: ask_to_stop(board, job, wanted, self._clock))

    async def resume(self, job: str) -> JobStatus:
        """Have workers go on with a job; how it stands then. Raises `NoSuchJob` and `InvalidTransition`."""
        return await self._changed(lambda board: resume_job(board, job, self._clock))

    async def _changed(self, change: Callable[[BulkBoard], JobStatus]) -> JobStatus:
        try:
            return await self._thread.call(change)
        finally:
            self._fresh_until = float("-inf")

    async def _look(self) -> JobsFigures:
        before, clock = self._figures, self._clock
        if before.began_at is None:
            before = self._figures = replace(before, began_at=clock.now_ms())

        def read(board: BulkBoard) -> tuple[list[tuple[BulkJob, JobSummary]], float]:
            # Without the time until the store is open, or others are done with it.
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
        self._figures = observed(self._figures, rows, clock.now_ms(), now)
        self._rest_s = min(took_s / _SHARE, _LONGEST_REST_S)
        self._fresh_until = now + max(self._remember_s, self._rest_s)
        return self._figures

    async def _watch(self) -> None:
        while True:
            try:
                await self.jobs()
            except StrandlineError:
                pass  # Counted and logged by the look.
            except Exception:  # noqa: BLE001 - whatever it is, the next look may work, and the log has all of it
                _LOG.exception("the look-up of bulk jobs has failed")
            await asyncio.sleep(max(self._every_s, self._rest_s))


def read_jobs(board: BulkBoard, before: JobsFigures, clock: Clock) -> list[tuple[BulkJob, JobSummary]]:
    """All jobs with their counts, in the order in which they were planned. Parts of a job that had ended before and has
    not changed since are not read again. A job that has expired is cancelled here: there may be no worker to do it.
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
