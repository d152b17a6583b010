"""The tree as JSON, with Prometheus' names."""

import json

import pytest

from strandline.promql.parser import parse
from strandline.promql.tree_json import tree_of

pytestmark = pytest.mark.unit


def tree(query: str) -> dict[str, object]:
    parsed: dict[str, object] = json.loads(json.dumps(tree_of(parse(query))))
    return parsed


def selector(name: str, **changes: object) -> dict[str, object]:
    return {
        "type": "vectorSelector",
        "name": name,
        "matchers": [{"name": "__name__", "type": "=", "value": name}],
        "offset": 0,
        "offsetExpr": None,
        "timestamp": None,
        "startOrEnd": None,
        "anchored": False,
        "smoothed": False,
        **changes,
    }


def number(value: str) -> dict[str, object]:
    return {"type": "numberLiteral", "val": value}


def test_selectors():
    assert tree("up offset -5m @ 1.5") == selector("up", offset=-300_000, timestamp=1500)
    matched = [{"name": "job", "type": "!~", "value": "x"}, {"name": "__name__", "type": "=", "value": "up"}]
    assert tree('up{job!~"x"}[90] @ end()') == selector(
        "up", type="matrixSelector", matchers=matched, range=90_000, rangeExpr=None, startOrEnd="end"
    )


def test_subqueries_and_arithmetic_in_durations():
    step = {"type": "durationExpr", "op": "step", "lhs": None, "rhs": None, "wrapped": False}
    five = {"type": "numberLiteral", "val": "5", "duration": False}
    minute = {"type": "numberLiteral", "val": "60", "duration": True}
    wrapped = {"type": "durationExpr", "op": "+", "lhs": None, "rhs": five, "wrapped": True}
    product = {"type": "durationExpr", "op": "*", "lhs": wrapped, "rhs": minute, "wrapped": False}
    assert tree("up[(5) * 1m:-(step())]") == {
        "type": "subquery",
        "expr": selector("up"),
        "range": 0,
        "rangeExpr": product,
        "step": 0,
        "stepExpr": {
            "type": "durationExpr",
            "op": "-",
            "lhs": None,
            "rhs": {**step, "wrapped": True},
            "wrapped": False,
        },
        "offset": 0,
        "offsetExpr": None,
        "timestamp": None,
        "startOrEnd": None,
    }


def test_calls_and_aggregations():
    function = {"name": "round", "argTypes": ["vector", "scalar"], "variadic": 1, "returnType": "vector"}
    assert tree("topk by (a) (3, round(up))") == {
        "type": "aggregation",
        "op": "topk",
        "expr": {"type": "call", "func": function, "args": [selector("up")]},
        "param": number("3"),
        "grouping": ["a"],
        "without": False,
    }
    called = tree('label_join(up, "a", "\\xff")')
    assert called["func"]["variadic"] == -1
    assert called["args"][2] == {"type": "stringLiteral", "val": "\ufffd"}


def test_operators():
    matching = {
        "card": "many-to-one",
        "labels": ["x"],
        "on": True,
        "include": ["y"],
        "fillValues": {"lhs": None, "rhs": None},
    }
    assert tree("a > bool on (x) group_left (y) -(b)") == {
        "type": "binaryExpr",
        "op": ">",
        "lhs": selector("a"),
        "rhs": {"type": "unaryExpr", "op": "-", "expr": {"type": "parenExpr", "expr": selector("b")}},
        "matching": matching,
        "bool": True,
    }
    assert tree("1 + Inf")["matching"] is None
    assert tree("1 + Inf")["rhs"] == number("+Inf")
