"""Random expressions, compared with a real Prometheus over the same data."""

import math
import os
from collections.abc import Iterator
from random import Random
from typing import Any

import cramjam
import orjson
import pytest

from strandline.errors import StrandlineError
from strandline.index.documents import decode_part_key
from strandline.promql.evaluation.results import Result
from strandline.promql.local import LocalEngine, split
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.value_types import ValueType
from strandline.wire.encoding import Series, encode_request
from support.older_expressions import MINUTE, NOW, WORDS, OlderExpressions, older_series
from support.prometheus import PrometheusClient, prometheus

pytestmark = pytest.mark.system

DATA_SEED = 20261119
# Override with PROMQL_SEEDS=400-9000.
SEEDS = range(*map(int, os.environ.get("PROMQL_SEEDS", "0-400").split("-")))
MOMENTS = (
    QueryTimes.instant(NOW + 15 * MINUTE),
    QueryTimes.instant(NOW + 40 * MINUTE),
    QueryTimes(NOW + 10 * MINUTE, NOW + 45 * MINUTE, 5 * MINUTE),
    QueryTimes(NOW, NOW + 30 * MINUTE, 75_000),
)
Labels = tuple[tuple[str, str], ...]
Points = dict[Labels, dict[int, float]]
# 2.42 does not compensate sums.
RELATIVE, ABSOLUTE = 1e-7, 1e-7


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PrometheusClient, LocalEngine]]:
    """A Prometheus and our engine, over two shards, with the same samples."""
    series = older_series(Random(DATA_SEED))  # noqa: S311 - the same each time
    body = encode_request(Series(tuple(sorted(labels.items())), samples) for labels, samples in series)
    home = tmp_path_factory.mktemp("beside") / "home"
    with prometheus(home, lambda _: {}, "--web.enable-remote-write-receiver") as real:
        real.post("/api/v1/write", bytes(cramjam.snappy.compress_raw(body)))
        yield real, LocalEngine(split(series, 2))


def answer_of(real: PrometheusClient, text: str, times: QueryTimes) -> tuple[str, Any]:
    """The answer of Prometheus: the type of an error, or the type of a value and its points."""
    if times.is_instant:
        _, body = real.request("/api/v1/query", query=text, time=times.start / 1000)
    else:
        bounds = {"start": times.start / 1000, "end": times.end / 1000, "step": times.step / 1000}
        _, body = real.request("/api/v1/query_range", query=text, **bounds)
    answer = orjson.loads(body)
    if answer["status"] == "error":
        return answer["errorType"], answer["error"]
    kind, found = answer["data"]["resultType"], answer["data"]["result"]
    if kind in ("scalar", "string"):
        return kind, found[1] if kind == "string" else {(): {times.start: float(found[1])}}
    return kind, {
        tuple(sorted(series["metric"].items())): {
            round(time * 1000): float(value) for time, value in series.get("values") or [series["value"]]
        }
        for series in found
    }


def ours(engine: LocalEngine, text: str, times: QueryTimes) -> tuple[str, Any]:
    """The answer of our engine in the same form."""
    try:
        result = engine.query(text, times)
    except StrandlineError as error:
        return "execution" if type(error).__name__ == "EvaluationError" else "bad_data", error.message
    if result.kind is ValueType.STRING:
        return "string", result.text
    return result.kind.value, points_of(result, times)


def points_of(result: Result, times: QueryTimes) -> Points:
    points = result.points
    if points is None:
        return {(): {times.start: result.number}}
    found: Points = {}
    for place in range(len(points)):
        own = slice(int(points.first_point[place]), int(points.first_point[place + 1]))
        values = dict(zip(points.time[own].tolist(), points.value[own].tolist(), strict=True))
        found[tuple(sorted(decode_part_key(points.keys.key(place)).items()))] = values
    return found


def difference(found: tuple[str, Any], wanted: tuple[str, Any]) -> str:
    """How our answer differs; empty if it does not."""
    (kind, mine), (wanted_kind, other) = found, wanted
    if kind != wanted_kind:
        return f"{kind} instead of {wanted_kind}: {str(mine)[:200]} instead of {str(other)[:200]}"
    if isinstance(mine, str) or isinstance(other, str):
        return "" if mine == other or kind in ("execution", "bad_data") else f"{mine} instead of {other}"
    if mine.keys() != other.keys():
        only = [sorted(one.keys() - two.keys())[:2] for one, two in ((mine, other), (other, mine))]
        return f"series of ours alone: {only[0]}, of theirs alone: {only[1]}"
    for labels, points in other.items():
        if mine[labels].keys() != points.keys():
            return f"{labels}: points at {sorted(mine[labels].keys() ^ points.keys())[:3]} in one answer alone"
        for time, value in points.items():
            if not is_close(mine[labels][time], value):
                return f"{labels}: {mine[labels][time]!r} instead of {value!r} at {time}"
    return ""


def is_close(one: float, other: float) -> bool:
    if not (math.isfinite(one) and math.isfinite(other)):
        return one == other or (math.isnan(one) and math.isnan(other))
    return abs(one - other) <= max(ABSOLUTE, RELATIVE * max(abs(one), abs(other)))


def test_random_expressions_equal_the_answers_of_prometheus(both: tuple[PrometheusClient, LocalEngine]) -> None:
    """Each expression has a seed, which a difference names."""
    real, engine = both
    differences, answered = [], 0
    for seed in SEEDS:
        text = OlderExpressions(Random(seed), WORDS).vector(4)  # noqa: S311 - the same each time
        times = MOMENTS[seed % len(MOMENTS)]
        wanted = answer_of(real, text, times)
        if why := difference(ours(engine, text, times), wanted):
            differences.append(f"seed {seed}, {times}: {text}\n  {why}")
        answered += isinstance(wanted[1], dict) and bool(wanted[1])
    assert not differences, "\n".join(differences)
    assert answered > len(SEEDS) // 3, "many of them select existing series"
