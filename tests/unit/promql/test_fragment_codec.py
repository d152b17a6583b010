"""A fragment from another process, which may have another version, is decoded correctly or rejected."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from strandline.promql.engine import prepare
from strandline.promql.plan.fragment_codec import MAX_STEPS, VERSION, fragment_of_json, fragment_to_json
from strandline.promql.plan.fragments import Fragment
from strandline.promql.plan.query_times import QueryTimes

pytestmark = pytest.mark.unit

TIMES = QueryTimes(1_700_000_000_000, 1_700_000_600_000, 60_000)
STEPS = TIMES.grid.count
TEXT = 'quantile by (job) (0.5, clamp(abs(-rate(m{job=~"a|b"}[5m] offset 1m)), time(), Inf) > bool NaN)'
NUMBER = "000000000000f03f"

Damage = Callable[[dict[str, Any]], object]


def fragment_of(text: str) -> Fragment:
    [fragment] = prepare(text, TIMES).fragments
    assert isinstance(fragment, Fragment)
    return fragment


def as_sent(fragment: Fragment) -> dict[str, Any]:
    sent = json.loads(json.dumps(fragment_to_json(fragment)))
    assert isinstance(sent, dict)
    return sent


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "m",
        "timestamp(m @ 1.5)",
        'count_values without (a, b) ("value", m)',
        "topk(time(), m)",
        "predict_linear(m[5m], time())",
        "2 ^ m",
        "round(m)",
        "round(m, 5)",
        "clamp_min(hour(m), 2)",
        "quantile_over_time(0.5, m[5m])",
        "-m == bool 3",
        "max(m)",
    ],
)
def test_encoding_and_decoding_preserves_a_fragment(text: str) -> None:
    sent = as_sent(fragment_of(text))
    # A parameter may be NaN, which is not equal to itself; in the encoding, it is compared by its bits.
    assert fragment_to_json(fragment_of_json(sent)) == sent
    if "NaN" not in text:
        assert fragment_of_json(sent) == fragment_of(text)


def _set(name: str, value: object) -> Damage:
    return lambda data: data.update({name: value})


def _grids(value: list[Any]) -> Damage:
    return lambda data: data.update(ends=value, times=value)


def _link(*link: object) -> Damage:
    return lambda data: data["chain"].append(list(link))


def _in_grouping(index: int, value: object) -> Damage:
    return lambda data: data["grouping"].__setitem__(index, value)


DAMAGES: dict[str, tuple[Damage, str]] = {
    "a later version": (
        _set("version", VERSION + 1),
        f"version {VERSION + 1} of a fragment; this process supports {VERSION}",
    ),
    "an earlier version": (_set("version", VERSION - 1), "version"),
    "a version as text": (_set("version", str(VERSION)), "version"),
    "an unknown function": (_set("function", "median_over_time"), "'median_over_time' over range vectors"),
    "a function of single values over a range": (_set("function", "abs"), "'abs' over range vectors"),
    "a function that is not a string": (_set("function", 1), "1 is not a string"),
    "an unknown function in the chain": (_link("map", "halve", []), "'halve' of single values"),
    "a function over a range in the chain": (_link("map", "rate", []), "'rate' of single values"),
    "an unknown link": (_link("invert"), "is not a link"),
    "a link without its parts": (_link("operator", "+", NUMBER), "is not a link"),
    "an unknown operator": (_link("operator", "plus", NUMBER, False, False), "plus"),
    "an unknown aggregator": (_in_grouping(0, "median"), "median"),
    "a label that is not a string": (_in_grouping(1, [1]), "1 is not a string"),
    "`without` as a number": (_in_grouping(2, 1), "1 is not a boolean"),
    "an unknown kind of parameter": (_in_grouping(3, ["series", "m"]), "not a parameter of an aggregation"),
    "an unknown operator of a matcher": (_set("matchers", [["a", "~=", "b"]]), "~="),
    "a matcher without a value": (_set("matchers", [["a", "="]]), "not enough values"),
    "more steps than windows": (_set("times", [0, 1, STEPS + 1]), f"{STEPS} windows for {STEPS + 1} steps"),
    "a negative number of steps": (_grids([0, 1, -1]), "-1 steps"),
    "too many steps": (_grids([0, 1, MAX_STEPS + 1]), f"{MAX_STEPS + 1} steps"),
    "steps that go back": (_grids([0, -1, STEPS]), "of -1 ms"),
    "half a step": (_grids([0, 1, 1.5]), "1.5"),
    "a step that is true": (_grids([0, True, STEPS]), "True"),
    "a grid without a step": (_grids([0, STEPS]), "not enough values"),
    "a time beyond all times": (_grids([1 << 62, 1, STEPS]), "not a valid number of milliseconds"),
    "a window as text": (_set("window", "5m"), "not a valid number of milliseconds"),
    "a parameter for two of the steps": (_set("parameters", [NUMBER * 2]), f"2 numbers for {STEPS} steps"),
    "a parameter without numbers": (_set("parameters", [""]), f"0 numbers for {STEPS} steps"),
    "half a number": (_set("parameters", [NUMBER[:8]]), "a parameter has 4 bytes"),
    "a parameter too many": (_set("parameters", [NUMBER]), "rate has 1 parameters, not 0"),
    "a parameter too few": (_set("function", "quantile_over_time"), "quantile_over_time has 0 parameters, not 1"),
    "a parameter of the newest sample": (
        lambda data: data.update(function="", parameters=[NUMBER]),
        "has 1 parameters, not 0",
    ),
    "a parameter too few in the chain": (_link("map", "clamp", [NUMBER]), "clamp has 1 parameters, not 2"),
    "a parameter too many in the chain": (_link("map", "round", [NUMBER] * 2), "round has 2 parameters, not 1"),
    "an aggregation without its parameter": (_in_grouping(3, None), "None is not a parameter of quantile"),
    "a label for a number": (_in_grouping(3, ["label", "a"]), "is not a parameter of quantile"),
    "a number for an aggregation without any": (_in_grouping(0, "sum"), "is not a parameter of sum"),
    "a number for a label": (_in_grouping(0, "count_values"), "is not a parameter of count_values"),
    "an aggregation that is not enabled": (_in_grouping(0, "limitk"), "is not a parameter of limitk"),
    "a parameter that is not hexadecimal": (_set("parameters", ["x" * 16]), "hexadecimal"),
    "a parameter for two of the steps in the chain": (_link("map", "round", [NUMBER * 2]), "2 numbers"),
    "a parameter for two of the steps in the grouping": (_in_grouping(3, ["numbers", NUMBER * 2]), "2 numbers"),
    "no grouping at all": (lambda data: data.pop("grouping"), "grouping"),
    "no version at all": (lambda data: data.pop("version"), "version"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_fragments_of_other_versions_and_invalid_fragments_are_rejected(name: str) -> None:
    damage, about = DAMAGES[name]
    data = as_sent(fragment_of(TEXT))
    fragment_of_json(data)
    damage(data)
    with pytest.raises((ValueError, TypeError, KeyError), match=about):
        fragment_of_json(data)
