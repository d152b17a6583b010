"""The fragments of a PromQL query, asked of the shards all at once."""

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
    """What the fragments gave, and what was said about them."""

    values: Mapping[AnyFragment, FragmentValue]
    annotations: Annotations
    samples: int
    """How many were read."""
    warnings: tuple[str, ...]
    """What may be missing."""

    @property
    def series(self) -> int:
        """How many series, or groups, the fragments gave."""
        return sum(len(value.keys) for value in self.values.values())


async def fetch(
    queries: NodeQueries, fragments: Sequence[AnyFragment], limits: EvaluationLimits, scope: QueryScope
) -> Fetched:
    """Ask for all fragments. The first error is raised at once, and the others are given up."""
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
    # The time of all begins now. Each has a lease of its own, so that what one gives back is its own.
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
