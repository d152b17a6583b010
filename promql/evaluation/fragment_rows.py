"""Evaluates the window function and the chain of a fragment over the samples of some series. A shard does this for each
block of series, and the front for series whose samples it has fetched.
"""

from collections.abc import Sequence

from strandline.arrays import F64s
from strandline.promql.arithmetic import negated, scalar_with_vector, vector_with_scalar
from strandline.promql.elementwise import evaluate_elementwise
from strandline.promql.plan.fragments import LATEST, TIMESTAMP, Fragment, Link, MapLink, NegateLink, per_step
from strandline.promql.values import F64Matrix, Grid, Samples
from strandline.promql.windows import evaluate_window, latest, latest_time, without_stale


def fragment_rows(fragment: Fragment, samples: Samples) -> F64Matrix:
    """One row for each series of the samples, in their order, before the aggregation. Keys are not read."""
    values = _window(fragment, samples)
    for link in fragment.chain:
        values = _linked(values, link, fragment.times)
    return values


def _window(fragment: Fragment, samples: Samples) -> F64Matrix:
    ends, length = fragment.ends, fragment.window
    if fragment.function == LATEST:
        return latest(samples, ends, length)
    if fragment.function == TIMESTAMP:
        return latest_time(samples, ends, length)
    parameters = numbers(fragment.parameters, ends.count)
    timestamps = fragment.times.timestamps()
    return evaluate_window(fragment.function, without_stale(samples), ends, length, parameters, timestamps=timestamps)


def numbers(parameters: Sequence[tuple[float, ...]], count: int) -> tuple[F64s, ...]:
    """Parameters with one number for each step."""
    return tuple(per_step(one, count) for one in parameters)


def _linked(values: F64Matrix, link: Link, times: Grid) -> F64Matrix:
    match link:
        case MapLink(function=function, parameters=parameters):
            return evaluate_elementwise(function, values, numbers(parameters, times.count), times)
        case NegateLink():
            return negated(values)
    scalar = per_step(link.scalar, times.count)
    if link.scalar_is_left:
        return scalar_with_vector(link.operator, scalar, values, returns_bool=link.returns_bool)
    return vector_with_scalar(link.operator, values, scalar, returns_bool=link.returns_bool)
