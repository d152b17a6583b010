"""Random expressions have the same answers for any number of shards."""

from random import Random

import numpy as np
import pytest

from strandline.errors import StrandlineError
from strandline.promql.errors import EvaluationError, ParseError
from strandline.promql.evaluation.results import Result
from strandline.promql.local import LocalEngine, split
from strandline.promql.plan.query_times import QueryTimes
from support.promql_expressions import Vocabulary, expressions

pytestmark = pytest.mark.unit

START, MINUTE = 1_700_000_000_000, 60_000
WORDS = Vocabulary(
    metrics=("requests_total", "latency_bucket", "temperature"),
    labels={"job": ("a", "b"), "instance": ("1", "2", "3"), "le": ("0.5", "1", "+Inf")},
    durations=("1m", "5m", "7m30s", "20m"),
    moments=("1700001200", "start()", "end()"),
)
EXPRESSIONS = 400


def engines() -> dict[int, LocalEngine]:
    """Integers, so that sums are exact in any order."""
    random = Random(7)  # noqa: S311 - the same each time
    series = []
    for metric in WORDS.metrics:
        for job in WORDS.labels["job"]:
            for instance in WORDS.labels["instance"]:
                for le in WORDS.labels["le"] if metric.endswith("_bucket") else ("",):
                    labels = {"__name__": metric, "job": job, "instance": instance, "le": le}
                    times = sorted(random.sample(range(0, 40 * MINUTE, 5000), 100))
                    values = np.cumsum([random.randrange(-3 if metric == "temperature" else 0, 9) for _ in times])
                    series.append(
                        (labels, [(START + at, float(value)) for at, value in zip(times, values, strict=True)])
                    )
    return {shards: LocalEngine(split(series, shards)) for shards in (1, 2, 5)}


def outcome(engine: LocalEngine, text: str, times: QueryTimes) -> Result | type[StrandlineError]:
    try:
        return engine.query(text, times)
    except (EvaluationError, ParseError) as error:
        return type(error)


def listed(result: Result) -> dict[bytes, tuple[list[int], np.ndarray]]:
    points = result.points
    if points is None:
        return {b"": ([], np.array([result.number]))}
    return {
        points.keys.key(position): (
            points.time[points.first_point[position] : points.first_point[position + 1]].tolist(),
            points.value[points.first_point[position] : points.first_point[position + 1]],
        )
        for position in range(len(points))
    }


def test_random_expressions_have_the_same_answer_over_1_2_and_5_shards() -> None:
    found = engines()
    timestamps = (
        QueryTimes.instant(START + 25 * MINUTE),
        QueryTimes(START + 20 * MINUTE, START + 38 * MINUTE, 3 * MINUTE),
    )
    answered = 0
    for number, text in enumerate(expressions(20261118, EXPRESSIONS, words=WORDS, depth=4)):
        times = timestamps[number % 2]
        result, *others = (outcome(engine, text, times) for engine in found.values())
        for other in others:
            if not isinstance(result, Result) or not isinstance(other, Result):
                assert result == other, text
                continue
            expected, got = listed(result), listed(other)
            assert got.keys() == expected.keys(), text
            assert result.annotations == other.annotations, text
            for key, (at, values) in expected.items():
                assert got[key][0] == at, text
                np.testing.assert_allclose(got[key][1], values, rtol=1e-9, err_msg=text)
        answered += isinstance(result, Result) and bool(listed(result))
    assert answered > EXPRESSIONS // 4, "most of them concern existing series"
