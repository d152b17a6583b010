"""Evaluates the rest of a PromQL query in the front, over the results of its fragments.

Small queries are evaluated in the event loop, the others in a worker thread. Between two nodes of the plan, the
evaluation ends if the client has closed the connection, the timeout has passed, or there is no memory for the next
value.
"""

import asyncio
from collections.abc import Callable

from strandline.clock import Clock
from strandline.node.http.api.fetching import Fetched
from strandline.node.query.answer_memory import MemoryLease
from strandline.node.query.queries import Cancellation, QueryScope, QueryTooLarge, timed_out
from strandline.node.workers import Workers
from strandline.promql.engine import Prepared, evaluate
from strandline.promql.evaluation.budget import Budget, cells_of
from strandline.promql.evaluation.results import Result
from strandline.promql.plan.nodes import steps

# Evaluations of at most this many cells run in the event loop.
_MAX_INLINE_CELLS = 5000
# How much memory a worker thread takes at a time: each time, it waits for the event loop.
_GRANT_BYTES = 1 << 20
# How often a thread that waits for memory checks whether its query was cancelled.
_POLL_S = 0.05
_CELL_BYTES, _POINT_BYTES = 8, 16


class FrontBudget(Budget):
    """Limits an evaluation to `query.max_samples`, and takes its memory."""

    def __init__(self, max_samples: int, fetched_cells: int, take: Callable[[int], None]) -> None:
        """`take` takes a number of bytes, or raises. The memory of `fetched_cells` is counted already."""
        super().__init__()
        self._max_samples, self._fetched, self._take = max_samples, fetched_cells, take
        self._taken = 0

    def hold(self, cells: int, points: int = 0) -> None:
        super().hold(cells, points)
        if cells > self._max_samples:
            raise QueryTooLarge(
                "query processing would load too many samples into memory in query execution: it holds "
                f"{cells:,} values, and {self._max_samples:,} are allowed",
                remedy="Select fewer series, choose a longer step, or raise query.max_samples",
            )
        needed = _CELL_BYTES * (cells - self._fetched) + _POINT_BYTES * points
        if needed > self._taken:
            self._take(needed - self._taken)
            self._taken = needed


async def evaluate_rest(
    prepared: Prepared, fetched: Fetched, scope: QueryScope, *, max_samples: int, workers: Workers, clock: Clock
) -> tuple[Result, Budget]:
    """The result, and the budget that it used. Raises `QueryTooLarge`, `EvaluationError`, `QueryTimedOut`, and what
    `MemoryLease.grow` raises.
    """
    cells = sum(map(cells_of, fetched.values.values()))
    seconds = scope.seconds_left(asyncio.get_running_loop().time())
    cancellation = Cancellation(clock, seconds)
    cancellation.timeout_s = scope.timeout_s

    def result(budget: Budget) -> Result:
        return evaluate(prepared, fetched.values, fetched.annotations, cancellation.check, budget)

    if cells <= _MAX_INLINE_CELLS and (1 + fetched.series) * max(steps(prepared.rest)) <= _MAX_INLINE_CELLS:
        budget = FrontBudget(max_samples, cells, scope.memory.grow)
        return result(budget), budget
    memory = _ThreadMemory(scope.memory, cancellation)
    budget = FrontBudget(max_samples, cells, memory.take)
    try:
        async with asyncio.timeout(seconds):
            return await workers.run(lambda: result(budget)), budget
    except TimeoutError:
        raise timed_out(scope.timeout_s) from None
    finally:
        # If this task was cancelled, the thread may still be running.
        cancellation.cancel()


class _ThreadMemory:
    """Takes memory for a thread from a lease of the event loop."""

    def __init__(self, lease: MemoryLease, cancellation: Cancellation) -> None:
        self._lease, self._cancellation = lease, cancellation
        self._loop = asyncio.get_running_loop()
        self._granted = 0

    def take(self, size: int) -> None:
        """Called in the thread."""
        if size > self._granted:
            more = max(size - self._granted, _GRANT_BYTES)
            grown = asyncio.run_coroutine_threadsafe(self._grow(more), self._loop)
            while True:
                try:
                    grown.result(_POLL_S)
                    break
                except TimeoutError:
                    self._cancellation.check()
            self._granted += more
        self._granted -= size

    async def _grow(self, size: int) -> None:
        # The lease of a cancelled query is released already.
        self._cancellation.check()
        self._lease.grow(size)
