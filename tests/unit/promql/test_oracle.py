"""Answers, compared with those of a real Prometheus 3.15, with the series divided into 1, 2 and 5 shards."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import orjson
import pytest

from strandline.errors import StrandlineError
from strandline.index.documents import decode_part_key
from strandline.promql.engine import Result
from strandline.promql.errors import ParseError
from strandline.promql.local import LocalEngine, split
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.value_types import ValueType
from support.fake_queries import FakeQueries
from support.http_servers import Served, api_served, in_loop
from support.promql_oracle import KNOWN_DIFFERENCES, Case, difference, series, stratified

pytestmark = pytest.mark.unit

SHARDS = (1, 2, 5)
ABOUT_PARAMETERS = ("exceeded maximum resolution", 'invalid parameter "step"', 'invalid parameter "end"')


def engines() -> list[LocalEngine]:
    stored = [(dict(labels), samples) for labels, samples in series().items()]
    return [LocalEngine(split(stored, shards)) for shards in SHARDS]


def test_a_thousand_answers_are_those_of_prometheus() -> None:
    differences = []
    for case, engine in zip(in_process(stratified(1000)), cycle(engines()), strict=False):
        if mismatch := difference(case, *answered(engine, case)):
            differences.append(f"{case.name} {case.query}: {mismatch}")
    assert differences == []


def in_process(cases: Sequence[Case]) -> list[Case]:
    """The cases that do not only concern HTTP parameters."""
    return [
        case
        for case in cases
        if case.name not in KNOWN_DIFFERENCES and not case.response.get("error", "").startswith(ABOUT_PARAMETERS)
    ]


def test_answers_over_http_are_those_of_prometheus() -> None:
    stored = [(dict(labels), samples) for labels, samples in series().items()]
    chosen = [case for case in stratified(300, offset=7) if case.name not in KNOWN_DIFFERENCES]
    differences = [
        mismatch for shards, cases in parts(chosen) for mismatch in over_http(FakeQueries(stored, shards=shards), cases)
    ]
    assert differences == []


def parts(chosen: Sequence[Case]) -> list[tuple[int, Sequence[Case]]]:
    return [(shards, chosen[number :: len(SHARDS)]) for number, shards in enumerate(SHARDS)]


def over_http(queries: FakeQueries, chosen: Sequence[Case]) -> list[str]:
    async def test() -> list[str]:
        async with api_served(queries) as serving:
            return [mismatch for mismatch in [await difference_over_http(serving, case) for case in chosen] if mismatch]

    return in_loop(test())


async def difference_over_http(serving: Served, case: Case) -> str:
    if case.time is None:
        times = {name: f"{value / 1000:.3f}" for name, value in _range(case).items()}
        reply = await serving.post("/api/v1/query_range", data={"query": case.query, **times})
    else:
        reply = await serving.get("/api/v1/query", params={"query": case.query, "time": f"{case.time / 1000:.3f}"})
    answer = orjson.loads(reply.body)
    mismatch = difference(case, reply.status, answer)
    if not mismatch and case.response["status"] == "success":
        kinds = [kind for kind in ("warnings", "infos") if (kind in answer) != (kind in case.response)]
        mismatch = f"{kinds} are in one answer alone" if kinds else ""
    return f"{case.name} {case.query}: {mismatch}" if mismatch else ""


def _range(case: Case) -> dict[str, int]:
    return {"start": case.start, "end": case.end, "step": case.step}


def answered(engine: LocalEngine, case: Case) -> tuple[int, dict[str, Any]]:
    times = QueryTimes(case.start, case.end, case.step) if case.time is None else QueryTimes.instant(case.time)
    try:
        result = engine.query(case.query, times)
    except ParseError as error:
        return 400, {"status": "error", "errorType": "bad_data", "error": error.message}
    except StrandlineError as error:
        return 422, {"status": "error", "errorType": "execution", "error": error.message}
    return 200, {"status": "success", "data": {"resultType": result.kind.value, "result": as_json(result)}}


def as_json(result: Result) -> Any:
    """As parsed from JSON."""
    match result.kind:
        case ValueType.STRING:
            return [result.time / 1000, result.text]
        case ValueType.SCALAR:
            return [result.time / 1000, number_text(result.number)]
    points = result.points
    assert points is not None
    found = []
    for position in range(len(points)):
        own = slice(int(points.first_point[position]), int(points.first_point[position + 1]))
        values = [
            [time / 1000, number_text(value)]
            for time, value in zip(points.time[own].tolist(), points.value[own].tolist(), strict=True)
        ]
        found.append({"metric": decode_part_key(points.keys.key(position)), "values": values})
    return found


def number_text(value: float) -> str:
    return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(repr(value), repr(value))
