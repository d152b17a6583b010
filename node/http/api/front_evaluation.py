"""The rest of a PromQL query, evaluated in the front over what its fragments gave.

What is small is evaluated in the event loop, everything else in a worker thread. It is given up between two nodes of
the plan: when the client is gone, when the time is over, or when there is no memory for the next value.
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

# So many cells are evaluated in the event loop.
_FEW_CELLS = 5000
# How much memory a worker thread takes at a time: each time it waits for the event loop.
_TAKEN_AT_ONCE = 1 << 20
# How often a thread that waits for memory looks whether its query is still wanted.
_LOOK_S = 0.05
_CELL_BYTES, _POINT_BYTES = 8, 16


class FrontBudget(Budget):
    """Holds an evaluation to `query.max_samples`, and takes the memory for it."""

    def __init__(self, max_samples: int, fetched_cells: int, take: Callable[[int], None]) -> None:
        """`take` takes so many bytes more, or raises. What was fetched is counted already."""
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
    """The result, and what was held for it. Raises `QueryTooLarge`, `EvaluationError`, `QueryTimedOut`, and what
    `MemoryLease.grow` raises.
    """
    cells = sum(map(cells_of, fetched.values.values()))
    seconds = scope.seconds_left(asyncio.get_running_loop().time())
    cancellation = Cancellation(clock, seconds)
    cancellation.timeout_s = scope.timeout_s

    def result(budget: Budget) -> Result:
        return evaluate(prepared, fetched.values, fetched.annotations, cancellation.check, budget)

    if cells <= _FEW_CELLS and (1 + fetched.series) * max(steps(prepared.rest)) <= _FEW_CELLS:
        budget = FrontBudget(max_samples, cells, scope.memory.grow)
        return result(budget), budget
    memory = _MemoryOfThread(scope.memory, cancellation)
    budget = FrontBudget(max_samples, cells, memory.take)
    try:
        async with asyncio.timeout(seconds):
            return await workers.run(lambda: result(budget)), budget
    except TimeoutError:
        raise timed_out(scope.timeout_s) from None
    finally:
        # The thread may still be at it if this task was given up.
        cancellation.cancel()


class _MemoryOfThread:
    """Lets a thread take memory from a lease, which belongs to the event loop."""

    def __init__(self, lease: MemoryLease, cancellation: Cancellation) -> None:
        self._lease, self._cancellation = lease, cancellation
        self._loop = asyncio.get_running_loop()
        self._left = 0

    def take(self, size: int) -> None:
        """Called in the thread."""
        if size > self._left:
            more = max(size - self._left, _TAKEN_AT_ONCE)
            grown = asyncio.run_coroutine_threadsafe(self._grow(more), self._loop)
            while True:
                try:
                    grown.result(_LOOK_S)
                    break
                except TimeoutError:
                    self._cancellation.check()
            self._left += more
        self._left -= size

    async def _grow(self, size: int) -> None:
        # Of a query that was given up the lease is released already.
        self._cancellation.check()
        self._lease.grow(size)
