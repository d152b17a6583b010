"""Queries over a small data set with the answers of a real Prometheus 3.15, and how answers are compared."""

import gzip
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strandline.wire.snappy import decompress
from support.remote_write import RawWriteRequest

_FOLDER = Path(__file__).parents[1] / "data" / "promql"
_TOLERANCE = 1e-9
Labels = tuple[tuple[str, str], ...]
KNOWN_DIFFERENCES: Mapping[str, str] = {
    "g-00157": "two series tie in topk, and Prometheus takes the one that was written first",
    "g-03759": "times that Prometheus' 64 bits of nanoseconds do not hold: ours end at 2^53 ms",
    "g-03760": "the same",
    "g-03763": "the same",
    "g-03764": "the same",
}
"""The queries, by name, that are answered differently, and why."""


@dataclass(frozen=True, slots=True)
class Case:
    """A query. An instant query has `time`, a range query the other three, in milliseconds."""

    name: str
    group: str
    query: str
    time: int | None
    start: int
    end: int
    step: int
    status: int
    response: Mapping[str, Any]


def bodies() -> list[bytes]:
    """The data as remote-write bodies, in order."""
    content, found, at = (_FOLDER / "samples.rw").read_bytes(), [], 0
    while at < len(content):
        length = int.from_bytes(content[at : at + 4], "big")
        found.append(content[at + 4 : at + 4 + length])
        at += 4 + length
    return found


def series() -> dict[Labels, list[tuple[int, float]]]:
    """The samples of each label set, in the order of their times."""
    found: dict[Labels, list[tuple[int, float]]] = {}
    for body in bodies():
        request = RawWriteRequest.FromString(decompress(body, limit=1 << 26))
        for series in request.timeseries:
            labels = tuple((label.name.decode(), label.value.decode()) for label in series.labels)
            found.setdefault(labels, []).extend((sample.timestamp, sample.value) for sample in series.samples)
    return found


def cases() -> Iterator[Case]:
    """All queries, in a fixed order."""
    with gzip.open(_FOLDER / "cases.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            fields = json.loads(line)
            moment = {name: round(fields[name] * 1000) for name in ("time", "start", "end", "step") if name in fields}
            yield Case(
                fields["id"],
                fields["group"],
                fields["query"],
                moment.get("time"),
                moment.get("start", 0),
                moment.get("end", 0),
                moment.get("step", 0),
                fields["status"],
                fields["response"],
            )


def stratified(count: int, *, offset: int = 0) -> list[Case]:
    """About `count` queries: a proportional share of each group, spread evenly over it."""
    every = list(cases())
    share = count / len(every)
    chosen, seen = [], Counter[str]()
    for case in every:
        before = seen[case.group]
        seen[case.group] += 1
        if math.floor((before + 1 + offset) * share) > math.floor((before + offset) * share):
            chosen.append(case)
    return chosen


def difference(case: Case, status: int, answer: Mapping[str, Any]) -> str:
    """How an answer differs from that of Prometheus; empty if it does not. Texts of errors may differ."""
    expected = case.response
    if expected["status"] == "error":
        found = (status, answer.get("status"), answer.get("errorType"))
        wanted = (case.status, "error", expected["errorType"])
        return "" if found == wanted else f"{found} {answer.get('error')} instead of {wanted} {expected['error']}"
    if (status, answer.get("status")) != (case.status, "success"):
        return f"{status} {answer.get('errorType')}: {answer.get('error')}"
    data, wanted_data = answer["data"], expected["data"]
    if data["resultType"] != wanted_data["resultType"]:
        return f"a {data['resultType']} instead of a {wanted_data['resultType']}"
    found_result, wanted_result = data["result"], wanted_data["result"]
    match wanted_data["resultType"]:
        case "string":
            return "" if found_result == wanted_result else f"{found_result} instead of {wanted_result}"
        case "scalar":
            return _points_difference([found_result], [wanted_result])
    return _series_difference(found_result, wanted_result, in_order=case.group == "sorting")


def _series_difference(
    found: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]], *, in_order: bool
) -> str:
    found_keys, wanted_keys = [_labels(series) for series in found], [_labels(series) for series in wanted]
    if len(set(found_keys)) < len(found_keys):
        return "a label set is there twice"
    if missing := sorted(set(wanted_keys) - set(found_keys)):
        return f"{len(missing)} series are missing, such as {dict(missing[0])}; there are {len(found)}"
    if unexpected := sorted(set(found_keys) - set(wanted_keys)):
        return f"{len(unexpected)} series are unexpected, such as {dict(unexpected[0])}; there are {len(found)}"
    if in_order and found_keys != wanted_keys:
        return "the order of the series differs"
    by_key = dict(zip(found_keys, found, strict=True))
    for key, series in zip(wanted_keys, wanted, strict=True):
        other = by_key[key]
        if why := _points_difference(_points(other), _points(series)):
            return f"{dict(key)}: {why}"
    return ""


def _labels(element: Mapping[str, Any]) -> Labels:
    return tuple(sorted(element["metric"].items()))


def _points(element: Mapping[str, Any]) -> list[Any]:
    return element["values"] if "values" in element else [element["value"]]


def _points_difference(found: Sequence[Any], wanted: Sequence[Any]) -> str:
    if len(found) != len(wanted):
        return f"{len(found)} points instead of {len(wanted)}"
    for (time, value), (wanted_time, wanted_value) in zip(found, wanted, strict=True):
        if round(time * 1000) != round(wanted_time * 1000):
            return f"a point at {time} instead of {wanted_time}"
        if not _is_same(value, wanted_value):
            return f"{value} instead of {wanted_value} at {time}"
    return ""


def _is_same(found: str, wanted: str) -> bool:
    one, other = float(found), float(wanted)
    if math.isnan(other) or math.isinf(other):
        return found == wanted
    return abs(one - other) <= _TOLERANCE * max(abs(one), abs(other))
