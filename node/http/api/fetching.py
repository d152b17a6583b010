"""Requests the fragments of a PromQL query from the shards, concurrently."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from strandline.node.query.answers import FragmentResult
from strandline.node.query.queries import EvaluationLimits, NodeQueries, QueryScope
from strandline.promql.annotations import NONE, Annotations
from strandline.promql.evaluation.evaluator import FragmentValue
from strandline.promql.plan.fragments import AnyFragment


@dataclass(frozen=True, slots=True)
class Fetched:
    """The results of the fragments, with annotations and warnings."""

    values: Mapping[AnyFragment, FragmentValue]
    annotations: Annotations
    samples: int
    """How many samples were read."""
    warnings: tuple[str, ...]
    """What the results may lack."""

    @property
    def series(self) -> int:
        """How many series, or groups, the fragments have returned."""
        return sum(len(value.keys) for value in self.values.values())


async def fetch(
    queries: NodeQueries, fragments: Sequence[AnyFragment], limits: EvaluationLimits, scope: QueryScope
) -> Fetched:
    """Evaluate all fragments. The first error is raised at once, and cancels the others."""
    if len(fragments) == 1:
        results = [await queries.evaluate(fragments[0], limits, scope)]
    else:
        results = await _all(queries, fragments, limits, scope)
    annotations = NONE
    for one in results:
        annotations |= one.annotations
    return Fetched(
        {fragment: one.value for fragment, one in zip(fragments, results, strict=True)},
        annotations,
        sum(one.samples for one in results),
        tuple(dict.fromkeys(warning for one in results for warning in one.warnings)),
    )


async def _all(
    queries: NodeQueries, fragments: Sequence[AnyFragment], limits: EvaluationLimits, scope: QueryScope
) -> list[FragmentResult]:
    # The timeout of all begins now. Each fragment has its own lease, so that it gives back only its own memory.
    scope.seconds_left(asyncio.get_running_loop().time())
    leases = [scope.memory.part() for _ in fragments]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(queries.evaluate(fragment, limits, replace(scope, memory=lease)))
                for fragment, lease in zip(fragments, leases, strict=True)
            ]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        for lease in leases:
            scope.memory.take_over(lease)
    return [task.result() for task in tasks]
