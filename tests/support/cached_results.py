"""Shards with a result cache, compared with the same shards without one."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from strandline.errors import StrandlineError
from strandline.node.query.queries import EvaluationLimits
from strandline.node.query.shard_answers import ShardAnswers
from strandline.node.query.shard_queries import ShardClient, ShardQueries
from strandline.node.shard.report import ResultCacheFigures
from strandline.node.workers import Workers
from strandline.promql.annotations import NONE
from strandline.promql.engine import evaluate, prepare
from strandline.promql.evaluation.results import Result
from strandline.promql.plan.query_times import QueryTimes
from support.node_evaluation import series_of
from support.query_worlds import AnswersInProcess, LiveWorld, NodeWorld, node_world
from support.shard_world import MINUTE

LIMITS = EvaluationLimits(max_series=1000, max_samples=100_000)
STEP = 5 * MINUTE


class CacheComparison:
    """A node whose shards have a result cache, and the same node without."""

    def __init__(self, node: NodeWorld, uncached: ShardQueries, answers: list[ShardAnswers]) -> None:
        self.node, self.uncached, self.answers = node, uncached, answers

    @property
    def figures(self) -> ResultCacheFigures:
        all_figures = [answers.results.figures() for answers in self.answers]
        return ResultCacheFigures(
            sum(figures.hits for figures in all_figures),
            sum(figures.partial_hits for figures in all_figures),
            sum(figures.misses for figures in all_figures),
            sum(figures.bytes for figures in all_figures),
        )

    def kept(self, text: str, times: QueryTimes) -> tuple[int, int, int]:
        """How many fragments of a query are answered by the cache completely, partly, and not at all. Also checks the
        result.
        """
        before = self.figures
        self.check(text, times)
        now = self.figures
        return now.hits - before.hits, now.partial_hits - before.partial_hits, now.misses - before.misses

    def check(self, text: str, times: QueryTimes) -> None:
        """Compare both answers: series, times, values, annotations, warnings and errors."""
        kept, uncached = (self._outcome(queries, text, times) for queries in (self.node.queries, self.uncached))
        if isinstance(kept, str) or isinstance(uncached, str):
            assert kept == uncached, text
            return
        assert kept[1] == uncached[1], text
        found, expected = kept[0], uncached[0]
        assert list(found.annotations) == list(expected.annotations), text
        ours, theirs = series_of(found), series_of(expected)
        assert ours.keys() == theirs.keys(), text
        for labels, (time, value) in theirs.items():
            assert ours[labels][0].tolist() == time.tolist(), text
            np.testing.assert_allclose(ours[labels][1], value, rtol=1e-12, atol=1e-12, err_msg=text)

    def _outcome(self, queries: ShardQueries, text: str, times: QueryTimes) -> tuple[Result, set[str]] | str:
        prepared = prepare(text, times)
        node = replace(self.node, queries=queries)
        try:
            results = {fragment: node.evaluate(fragment, LIMITS) for fragment in prepared.fragments}
            annotations = NONE
            for result in results.values():
                annotations |= result.annotations
            values = {fragment: result.value for fragment, result in results.items()}
            return evaluate(prepared, values, annotations), {
                text for result in results.values() for text in result.warnings
            }
        except StrandlineError as error:
            return f"{type(error).__name__}: {error.message}"


@contextmanager
def cache_comparison(folder: Path, shards: int, **changes: Any) -> Iterator[CacheComparison]:
    with ExitStack() as opened:
        node = opened.enter_context(node_world(folder, shards=shards, linked=False, **changes))
        uncached: dict[int, ShardClient] = {}
        for number, world in enumerate(node.worlds):
            without = opened.enter_context(closing(ShardAnswers(LiveWorld(world), result_cache=0)))
            uncached[number] = AnswersInProcess(without)
        workers = opened.enter_context(closing(Workers(2)))
        answers = [service.answers for service in node.services]

        def here() -> dict[int, ShardClient]:
            return {number: client for number, client in uncached.items() if number in node.clients}

        queries = ShardQueries(here, node.status, workers, concurrency=4)
        yield CacheComparison(node, queries, answers)


def ending(now: int, *, steps: int = 12, step: int = STEP) -> QueryTimes:
    """A range that ends at the newest multiple of the step."""
    end = now // step * step
    return QueryTimes(end - steps * step, end, step)
