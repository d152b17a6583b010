"""Series that are equal after their metric names were dropped."""

import pytest

from strandline.promql.errors import EvaluationError
from strandline.promql.local import LocalEngine, split
from strandline.promql.plan.query_times import QueryTimes

pytestmark = pytest.mark.unit

MINUTE = 60_000
NOWHERE_BOTH = QueryTimes(2 * MINUTE, 62 * MINUTE, 20 * MINUTE)
SERIES = [
    ({"__name__": "a", "x": "1"}, [(MINUTE, 1.0), (2 * MINUTE, 2.0)]),
    ({"__name__": "b", "x": "1"}, [(61 * MINUTE, 3.0), (62 * MINUTE, 4.0)]),
]


@pytest.fixture(params=[1, 2, 5])
def engine(request: pytest.FixtureRequest) -> LocalEngine:
    return LocalEngine(split(SERIES, request.param))


@pytest.mark.parametrize("text", ['-{x="1"}', 'abs({x="1"})', '{x="1"} * 2', 'abs(rate({__name__="b",x="1"}[5m]))'])
def test_they_are_merged_if_no_step_has_samples_of_both(engine: LocalEngine, text: str) -> None:
    points = engine.query(text, NOWHERE_BOTH).points
    assert points is not None
    assert len(points) == 1


@pytest.mark.parametrize("text", ['rate({x="1"}[5m])', 'sum(rate({x="1"}[5m]))', 'max_over_time({x="1"}[5m])'])
def test_after_functions_over_ranges_they_are_an_error(engine: LocalEngine, text: str) -> None:
    with pytest.raises(EvaluationError, match="same labelset"):
        engine.query(text, NOWHERE_BOTH)


@pytest.mark.parametrize("text", ['-{x="1"}', 'abs(last_over_time({x="1"}[2h]))', 'rate({x="1"}[2h])'])
def test_they_are_an_error_if_a_step_has_samples_of_both(engine: LocalEngine, text: str) -> None:
    with pytest.raises(EvaluationError, match="same labelset"):
        engine.query(text, QueryTimes.instant(62 * MINUTE, lookback=120 * MINUTE))
