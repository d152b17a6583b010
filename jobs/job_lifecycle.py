"""What happens to jobs between parts: they begin, break, are paused, cancelled, completed and announced.

What a worker does for a job, any other may do as well, and again: every step is a compare-and-set.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from strandline.clock import Clock
from strandline.jobs.board import BulkBoard, NoSuchJob
from strandline.jobs.breaker import BreakerRules
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.running import FencePart, JobKind, PartStopped
from strandline.jobs.transitions import begin, complete_stop, conclude, expire, is_announced, takes_parts, trip_breaker
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart
from strandline.store.jobs import JobState

CountsOf = Callable[[BulkPart], AttemptCounts]


@dataclass(frozen=True, slots=True)
class WorkerRules:
    """When a job breaks, how often a worker that runs parts looks whether their job is to stop, and how many parts of a
    job that is to stop are fenced at once.
    """

    breaker: BreakerRules = field(default_factory=BreakerRules)
    poll_s: float = 2.0
    fences_at_once: int = 64


def stored_counts(part: BulkPart) -> AttemptCounts:
    """What a part's row says that was counted."""
    return AttemptCounts.from_json(part.counts)


def window_counts(job: BulkJob, parts: Iterable[BulkPart], counts_of: CountsOf = stored_counts) -> Counts:
    """What was counted since a job was started or resumed: by parts that are done, and by those that are being run."""
    return Counts.total(counts_of(part).fresh for part in parts if part.window == job.window)


def start_attempt(part: BulkPart, window: int) -> BulkPart:
    """A part that is about to be run. What has landed of it stays counted: its worker may find that the job is to stop,
    and leave it. What Kafka has refused of it before, in the same window, still counts, too.
    """
    before = stored_counts(part)
    refused = before.fresh.refused if part.window == window else 0
    return replace(part, window=window, counts=AttemptCounts(before.total, Counts(refused=refused)).to_json())


def needs_fence(part: BulkPart) -> bool:
    """Whether a worker that lost a part may still land something of it. One that takes the transactional id back after
    a fence finds in the store that the part is no longer leased to it, see `RunningPart.confirm`.
    """
    return part.state is not JobState.DONE and part.epoch > stored_counts(part).fenced


def require_running(job: BulkJob) -> None:
    """Raises `PartStopped` if a job's parts are not to be run."""
    if not takes_parts(job):
        raise PartStopped(f"{job.name} is {job.wanted or job.state}")


class JobLifecycle:
    """Sees to the jobs of one board."""

    def __init__(self, board: BulkBoard, kinds: dict[str, JobKind], clock: Clock, rules: WorkerRules) -> None:
        self._board, self._kinds, self._clock, self._rules = board, kinds, clock, rules

    def advance(self, job: BulkJob, counts_of: CountsOf = stored_counts) -> tuple[BulkJob, Sequence[BulkPart]]:
        """What has to be done about a job before a part of it is taken; the job and its parts as they are then.
        `counts_of` may know more of a part that is being run than its row does.
        """
        board, now, breaker = self._board, self._clock.now_ms, self._rules.breaker
        job = board.change(job, lambda one: begin(one, now()))
        # Read behind the job: a lease of one that is to stop is among these, or its worker sees it in `confirm`.
        parts = board.take_back_lost(job)
        if job.wanted and not any(part.state is JobState.LEASED for part in parts):
            parts = self._fenced(job, parts)

        def advanced(one: BulkJob) -> BulkJob:
            one = complete_stop(one, parts, now())
            one = trip_breaker(one, window_counts(one, parts, counts_of), breaker, now())
            return conclude(expire(one, now()), parts, now())

        job = board.change_once(job, advanced)
        if job.state is BulkJobState.COMPLETING:
            job = self._completed(job)
        elif not is_announced(job):
            job = self._announced(job)
        return job, parts

    def _completed(self, job: BulkJob) -> BulkJob:
        # Another worker may have seen them all done.
        parts = self._board.parts(job)

        def completed(one: BulkJob) -> BulkJob:
            return self._kinds[one.kind].complete(one, parts) if one.state is BulkJobState.COMPLETING else one

        return self._board.change(job, completed)

    def _announced(self, job: BulkJob) -> BulkJob:
        # What other workers have counted by now belongs to it.
        parts = self._board.parts(job)

        def announced(one: BulkJob) -> BulkJob:
            return one if is_announced(one) else self._kinds[one.kind].announce(one, parts)

        try:
            return self._board.change(job, announced)
        except NoSuchJob:
            # A job that has ended may be deleted at any time.
            return job

    def _fenced(self, job: BulkJob, parts: Sequence[BulkPart]) -> list[BulkPart]:
        """The parts of a job that is to stop. Of those that were begun and are not done nothing lands from now on: a
        worker that lost one may not know of it yet. Each has its count of what has landed then.
        """
        begun = [part for part in parts if needs_fence(part)]
        if not begun:
            return list(parts)
        with self._kinds[job.kind].fencing(job) as fence:
            at_once = min(self._rules.fences_at_once, len(begun))
            if at_once <= 1:
                fenced = [self._fence(part, fence) for part in begun]
            else:
                # Each waits for the brokers, and then for the store: thousands one after the other would take minutes.
                with ThreadPoolExecutor(at_once, thread_name_prefix="fence") as threads:
                    fenced = list(threads.map(lambda part: self._fence(part, fence), begun))
        found = {part.part: part for part in fenced}
        return [found.get(part.part, part) for part in parts]

    def _fence(self, part: BulkPart, fence: FencePart) -> BulkPart:
        landed, counts = fence(part), replace(stored_counts(part), fenced=part.epoch)
        counts = counts if landed is None else replace(counts, total=landed)
        fenced = replace(part, counts=counts.to_json(), renewals=part.renewals + 1)
        # If it was changed meanwhile, another worker sees to it.
        self._board.replace(part, fenced)
        return fenced
