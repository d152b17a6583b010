"""Subqueries whose range contains none of their steps, as is usual for `m[1m:20m]`."""

import pytest

from strandline.promql.functions import FUNCTIONS, Function
from strandline.promql.local import LocalEngine, split
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.value_types import ValueType

pytestmark = pytest.mark.unit

MINUTE = 60_000
ARGUMENTS = {ValueType.VECTOR: "m", ValueType.SCALAR: "1", ValueType.MATRIX: "m[5m]", ValueType.STRING: "'le'"}
# Neither time has a multiple of 20 minutes in its last minute.
TIMES = (QueryTimes.instant(25 * MINUTE), QueryTimes(25 * MINUTE, 26 * MINUTE, MINUTE // 2))


def called(function: Function) -> str:
    call = f"{function.name}({', '.join([ARGUMENTS[wanted] for wanted in function.parameters])})"
    return f"vector({call})" if function.returns is ValueType.SCALAR else call


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if not function.is_experimental])
def test_each_function_has_no_series_in_a_subquery_without_steps(name: str) -> None:
    engine = LocalEngine(split([({"__name__": "m", "le": "1"}, [(at * MINUTE, 1.0) for at in range(60)])], 2))
    call = called(FUNCTIONS[name])
    for inner in (call, f"sum({call})", f"topk(1, {call})", f"quantile(0.5, {call})", f"{call} or {call}"):
        for times in TIMES:
            found = engine.query(f"max_over_time(({inner})[1m:20m])", times).points
            assert found is not None
            assert not len(found), inner
