"""Moves jobs through their states: started, broken, paused, cancelled, completed and announced.

Any worker may take any step, and repeat it: every step is a compare-and-set.
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
    """The circuit breaker's limits, how often a worker checks whether the jobs of its parts must stop, and how many
    parts of a stopping job are fenced concurrently.
    """

    breaker: BreakerRules = field(default_factory=BreakerRules)
    poll_s: float = 2.0
    concurrent_fences: int = 64


def stored_counts(part: BulkPart) -> AttemptCounts:
    """The counts in a part's row."""
    return AttemptCounts.from_json(part.counts)


def window_counts(job: BulkJob, parts: Iterable[BulkPart], counts_of: CountsOf = stored_counts) -> Counts:
    """The counts since a job was started or resumed, over parts that are done and parts that are running."""
    return Counts.total(counts_of(part).fresh for part in parts if part.window == job.window)


def start_attempt(part: BulkPart, window: int) -> BulkPart:
    """The part as an attempt starts. What has landed stays counted, because the worker may release the part when it
    finds that the job must stop. Records that Kafka rejected earlier in the same window also stay counted.
    """
    before = stored_counts(part)
    refused = before.fresh.refused if part.window == window else 0
    return replace(part, window=window, counts=AttemptCounts(before.total, Counts(refused=refused)).to_json())


def needs_fence(part: BulkPart) -> bool:
    """Whether a worker that has lost the part could still land a chunk. A worker that acquires the transactional id
    again after the fence finds in the store that its lease is gone, see `RunningPart.confirm`.
    """
    return part.state is not JobState.DONE and part.epoch > stored_counts(part).fenced


def require_running(job: BulkJob) -> None:
    """Raises `PartStopped` if a job's parts must not run."""
    if not takes_parts(job):
        raise PartStopped(f"{job.name} is {job.wanted or job.state}")


class JobLifecycle:
    """Advances the jobs of one board."""

    def __init__(self, board: BulkBoard, kinds: dict[str, JobKind], clock: Clock, rules: WorkerRules) -> None:
        self._board, self._kinds, self._clock, self._rules = board, kinds, clock, rules

    def advance(self, job: BulkJob, counts_of: CountsOf = stored_counts) -> tuple[BulkJob, Sequence[BulkPart]]:
        """Take all steps that a job needs before a part of it is leased. Returns the job and its parts afterwards.
        `counts_of` may have newer counts of a running part than its row.
        """
        board, now, breaker = self._board, self._clock.now_ms, self._rules.breaker
        job = board.change(job, lambda one: begin(one, now()))
        # Read after the job: a lease of a stopping job is either among these, or its worker notices in `confirm`.
        parts = board.reclaim_lost(job)
        if job.wanted and not any(part.state is JobState.LEASED for part in parts):
            parts = self._fence_parts(job, parts)

        def advanced(one: BulkJob) -> BulkJob:
            one = complete_stop(one, parts, now())
            one = trip_breaker(one, window_counts(one, parts, counts_of), breaker, now())
            return conclude(expire(one, now()), parts, now())

        job = board.change_once(job, advanced)
        if job.state is BulkJobState.COMPLETING:
            job = self._complete(job)
        elif not is_announced(job):
            job = self._announce(job)
        return job, parts

    def _complete(self, job: BulkJob) -> BulkJob:
        # Read again: the job may be completing because another worker has seen all parts done.
        parts = self._board.parts(job)

        def completed(one: BulkJob) -> BulkJob:
            return self._kinds[one.kind].complete(one, parts) if one.state is BulkJobState.COMPLETING else one

        return self._board.change(job, completed)

    def _announce(self, job: BulkJob) -> BulkJob:
        # Read again: the event includes what other workers have counted since.
        parts = self._board.parts(job)

        def announced(one: BulkJob) -> BulkJob:
            return one if is_announced(one) else self._kinds[one.kind].announce(one, parts)

        try:
            return self._board.change(job, announced)
        except NoSuchJob:
            # An ended job may be deleted at any time.
            return job

    def _fence_parts(self, job: BulkJob, parts: Sequence[BulkPart]) -> list[BulkPart]:
        """Fence the started parts of a stopping job that are not done, because a worker that has lost one may not know
        it yet. From then on no chunk of them lands. Returns all parts, those with the counts of what has landed.
        """
        begun = [part for part in parts if needs_fence(part)]
        if not begun:
            return list(parts)
        with self._kinds[job.kind].fencing(job) as fence:
            concurrent = min(self._rules.concurrent_fences, len(begun))
            if concurrent <= 1:
                fenced = [self._fence_part(part, fence) for part in begun]
            else:
                # Each fence waits for the brokers and then for the store: thousands in sequence would take minutes.
                with ThreadPoolExecutor(concurrent, thread_name_prefix="fence") as threads:
                    fenced = list(threads.map(lambda part: self._fence_part(part, fence), begun))
        found = {part.part: part for part in fenced}
        return [found.get(part.part, part) for part in parts]

    def _fence_part(self, part: BulkPart, fence: FencePart) -> BulkPart:
        landed, counts = fence(part), replace(stored_counts(part), fenced=part.epoch)
        counts = counts if landed is None else replace(counts, total=landed)
        fenced = replace(part, counts=counts.to_json(), renewals=part.renewals + 1)
        # If the row has changed since, another worker handles it.
        self._board.replace(part, fenced)
        return fenced
