"""Compares two servers' answers to a range query."""

import json
import math
from collections.abc import Mapping
from typing import Any

from strandline.errors import Fatal

_TOLERANCE = 1e-6
Points = Mapping[float, float]
AnswerSeries = dict[str, Any]
Matrix = Mapping[tuple[tuple[str, str], ...], Points]


class PromqlFailed(Fatal):
    """A server answered a query with an error."""


class PromqlDiffers(Fatal):
    """Two servers gave different answers to a query."""


def series_in(status: int, body: bytes, query: str, server: str) -> list[AnswerSeries]:
    """The series of an answer. Raises `PromqlFailed`."""
    content = json.loads(body) if status == 200 else {}
    if content.get("status") != "success":
        raise PromqlFailed(f"{server} answered {query} with {status}: {body[:300].decode(errors='replace')}")
    found: list[AnswerSeries] = content["data"]["result"]
    return found


def check_agreement(query: str, ours: list[AnswerSeries], theirs: list[AnswerSeries], peer: str) -> None:
    """Raises `PromqlDiffers` unless both answers have the same series and points, apart from rounding."""
    check_count(query, len(ours), len(theirs), peer)
    mine, others = _matrix(ours), _matrix(theirs)
    for labels in mine.keys() | others.keys():
        if labels not in mine or labels not in others:
            where = peer if labels in mine else "the node"
            raise PromqlDiffers(f"{query}: {where} lacks the series {dict(labels)}")
        one, other = mine[labels], others[labels]
        if one.keys() != other.keys():
            raise PromqlDiffers(f"{query}: {dict(labels)} has {len(one)} points, and {len(other)} from {peer}")
        for time, value in one.items():
            if not (_is_close(value, other[time])):
                raise PromqlDiffers(f"{query}: {dict(labels)} is {value!r} at {time}, and {other[time]!r} from {peer}")


def check_ranks(query: str, ours: list[AnswerSeries], theirs: list[AnswerSeries], peer: str) -> None:
    """Raises `PromqlDiffers` unless both answers have the same values at each time, apart from rounding. Which of
    several series with the same value has the rank is left to the server.
    """
    mine, others = _values_by_time(ours), _values_by_time(theirs)
    if mine.keys() != others.keys():
        raise PromqlDiffers(f"{query} has values at {len(mine)} times, and at {len(others)} on {peer}")
    for time, values in mine.items():
        if len(values) != len(others[time]) or not all(map(_is_close, values, others[time])):
            raise PromqlDiffers(f"{query} is {values} at {time}, and {others[time]} on {peer}")


def check_count(query: str, ours: int, theirs: int, peer: str) -> None:
    """Raises `PromqlDiffers` unless both answers have the same number of series."""
    if ours != theirs:
        raise PromqlDiffers(f"{query} has {ours:,} series on the node, and {theirs:,} on {peer}")


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_TOLERANCE) or (math.isnan(one) and math.isnan(other))


def _values_by_time(series: list[AnswerSeries]) -> dict[float, list[float]]:
    found: dict[float, list[float]] = {}
    for one in series:
        for time, value in one["values"]:
            found.setdefault(time, []).append(float(value))
    return {time: sorted(values) for time, values in found.items()}


def _matrix(series: list[AnswerSeries]) -> Matrix:
    matrix = {}
    for one in series:
        points = {time: float(value) for time, value in one["values"]}
        matrix[tuple(sorted(one["metric"].items()))] = points
    return matrix
