"""The evaluation of the rest of a query in the front: its cancellation, its deadline and its memory."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from strandline.clock import SystemClock
from strandline.node.http.api import front_evaluation
from strandline.node.http.api.fetching import Fetched, fetch
from strandline.node.http.api.front_evaluation import evaluate_rest
from strandline.node.query.answer_memory import AnswerMemory, AnswerTooLarge
from strandline.node.query.queries import (
    EvaluationLimits,
    QueryCancelled,
    QueryScope,
    QueryTimedOut,
    QueryTooLarge,
)
from strandline.node.workers import Workers
from strandline.promql.engine import Prepared, evaluate, prepare
from strandline.promql.evaluation.results import Result
from strandline.promql.plan.query_times import QueryTimes
from support.fake_queries import FakeQueries
from support.http_servers import eventually, in_loop

pytestmark = pytest.mark.unit

LONG = "sum(sum_over_time(vector(time())[10000s:1s]))"
SERIES = [({"__name__": "up", "n": str(number)}, [(0, float(number))]) for number in range(20)]


class PausedEvaluation:
    """An evaluation that waits in its thread between two nodes until the test lets it continue."""

    def __init__(self) -> None:
        self.waiting, self.may_continue = threading.Event(), threading.Event()
        self.ended_with: BaseException | None = None

    def evaluate(
        self, prepared: Prepared, values: object, warnings: object, check: Callable[[], None], budget: object
    ) -> Result:
        def waiting_check() -> None:
            self.waiting.set()
            assert self.may_continue.wait(20)
            check()

        try:
            return evaluate(prepared, values, warnings, waiting_check, budget)
        except BaseException as error:
            self.ended_with = error
            raise


async def evaluated(query: str, scope: QueryScope, workers: Workers, max_samples: int = 10**6) -> Result:
    prepared = prepare(query, QueryTimes.instant(10**7))
    queries = FakeQueries(SERIES)
    fetched = await fetch(queries, prepared.fragments, EvaluationLimits(100, 10**6), scope)
    result, _ = await evaluate_rest(
        prepared, fetched, scope, max_samples=max_samples, workers=workers, clock=SystemClock()
    )
    return result


def scope(memory: AnswerMemory, seconds: float = 30.0) -> QueryScope:
    return QueryScope(seconds, memory.lease())


def test_a_cancelled_query_ends_in_its_thread_at_the_next_node(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation, memory = PausedEvaluation(), AnswerMemory(1 << 30)
    monkeypatch.setattr(front_evaluation, "evaluate", evaluation.evaluate)

    async def test() -> None:
        with closing(Workers(1)) as workers:
            query_scope = scope(memory)
            task = asyncio.create_task(evaluated(LONG, query_scope, workers))
            await eventually(evaluation.waiting.is_set)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            query_scope.memory.release()
            evaluation.may_continue.set()
            await eventually(lambda: evaluation.ended_with is not None)

    in_loop(test())
    assert isinstance(evaluation.ended_with, QueryCancelled)
    assert memory.used == 0


def test_a_query_is_answered_at_its_deadline_whatever_its_thread_does(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = PausedEvaluation()
    monkeypatch.setattr(front_evaluation, "evaluate", evaluation.evaluate)

    async def test() -> None:
        with closing(Workers(1)) as workers:
            with pytest.raises(QueryTimedOut, match=r"longer than 0\.05 s"):
                await evaluated(LONG, scope(AnswerMemory(1 << 30), 0.05), workers)
            evaluation.may_continue.set()
            await eventually(lambda: evaluation.ended_with is not None)

    in_loop(test())


@pytest.mark.parametrize("query", [LONG, "up @ 1 + up @ 1", "max_over_time(up[1h:1s] @ 1)"])
def test_an_evaluation_leases_the_memory_that_it_needs_within_the_limit(query: str) -> None:
    async def test(limit: int) -> int:
        memory = AnswerMemory(limit)
        with closing(Workers(1)) as workers:
            query_scope = scope(memory)
            await evaluated(query, query_scope, workers)
            return query_scope.memory.held

    assert in_loop(test(1 << 30)) > 0
    with pytest.raises(AnswerTooLarge):
        in_loop(test(100))


def test_simultaneously_used_values_are_counted() -> None:
    async def test(max_samples: int) -> Result:
        with closing(Workers(1)) as workers:
            return await evaluated(LONG, scope(AnswerMemory(1 << 30)), workers, max_samples)

    # Two numbers each for the time of each step, its vector, and the vector as samples.
    in_loop(test(50_000))
    with pytest.raises(QueryTooLarge, match=r"query\.max_samples"):
        in_loop(test(15_000))


def test_memory_of_all_fragments_counts_against_the_query() -> None:
    async def test() -> tuple[Fetched, int]:
        prepared, query_scope = prepare("up + up offset 1s", QueryTimes.instant(1)), scope(AnswerMemory(10_000))
        fetched = await fetch(
            FakeQueries(SERIES, size=1000), prepared.fragments, EvaluationLimits(100, 100), query_scope
        )
        return fetched, query_scope.memory.held

    fetched, held = in_loop(test())
    assert len(fetched.values) == 2
    assert held >= 2000
