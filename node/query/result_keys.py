"""The key of a fragment in the result cache, if its steps can be cached. Pure."""

from dataclasses import replace

import orjson

from strandline.promql.aggregation.spec import RANKING
from strandline.promql.plan.fragment_codec import fragment_to_json
from strandline.promql.plan.fragments import Fragment, MapLink, OperatorLink, Parameter
from strandline.promql.values import Grid


def result_key(fragment: Fragment, max_samples: int) -> bytes | None:
    """Fragments with equal keys have equal results at each common step. None for a fragment that is not cached: with a
    single step, pinned by `@`, or with parameters that differ between steps.
    """
    ends, times, grouping = fragment.ends, fragment.times, fragment.grouping
    if (
        ends.count < 2
        or not ends.step
        or ends.step != times.step
        or not all(len(one) == 1 for one in _scalars(fragment))
    ):
        return None
    if grouping is not None and grouping.aggregator in RANKING and not _is_one_or_more(grouping.parameter):
        # It has no candidates, which show whether there are samples.
        return None
    normalised = replace(
        fragment,
        matchers=tuple(sorted(set(fragment.matchers), key=lambda one: (one.label, one.op.value, one.value))),
        # The length is in the key as a power of two: ranges of very different lengths do not replace each other, and a
        # growing range keeps its key for long.
        ends=Grid(ends.start % ends.step, ends.step, 0),
        times=Grid(times.start - ends.start, times.step, 0),
    )
    # In JSON, parameters are their bits: 0 and -0 differ.
    return orjson.dumps([fragment_to_json(normalised), ends.count.bit_length(), max_samples])


def _scalars(fragment: Fragment) -> list[Parameter]:
    found = list(fragment.parameters)
    for link in fragment.chain:
        if isinstance(link, MapLink):
            found += link.parameters
        elif isinstance(link, OperatorLink):
            found.append(link.scalar)
    if fragment.grouping is not None and isinstance(fragment.grouping.parameter, tuple):
        found.append(fragment.grouping.parameter)
    return found


def _is_one_or_more(parameter: Parameter | str | None) -> bool:
    return isinstance(parameter, tuple) and parameter[0] >= 1
