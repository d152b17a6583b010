"""Encodes fragments as JSON for the connection to shards. The format has a version, because other nodes may use it."""

import struct
from types import NoneType
from typing import Any

from strandline.index.matchers import Matcher, MatchOp
from strandline.promql.aggregation.spec import RANKING
from strandline.promql.elementwise import ELEMENTWISE
from strandline.promql.expressions import Aggregator, Operator
from strandline.promql.functions import FUNCTIONS
from strandline.promql.plan.fragments import (
    LATEST,
    TIMESTAMP,
    Fragment,
    Grouping,
    Link,
    MapLink,
    NegateLink,
    OperatorLink,
    Parameter,
)
from strandline.promql.values import Grid
from strandline.promql.windows import WINDOW_FUNCTIONS

VERSION = 1
MAX_STEPS = 1_000_000
"""Above every limit of queries: a fragment with more steps is damaged."""
_PARAMETERS = {Aggregator.COUNT_VALUES: str, **dict.fromkeys((*RANKING, Aggregator.QUANTILE), tuple)}
"""The types of the parameters of aggregations. Other aggregations have no parameter."""


def fragment_to_json(fragment: Fragment) -> dict[str, Any]:
    """A fragment without its position in the query."""
    grouping = fragment.grouping
    return {
        "version": VERSION,
        "matchers": [[one.label, one.op.value, one.value] for one in fragment.matchers],
        "function": fragment.function,
        "ends": _grid_to_json(fragment.ends),
        "window": fragment.window,
        "times": _grid_to_json(fragment.times),
        "parameters": [_parameter_to_json(one) for one in fragment.parameters],
        "chain": [_link_to_json(one) for one in fragment.chain],
        "grouping": None
        if grouping is None
        else [
            grouping.aggregator.value,
            list(grouping.labels),
            grouping.is_without,
            _grouping_parameter_to_json(grouping.parameter),
        ],
    }


def fragment_of_json(data: Any) -> Fragment:
    """Decode and check a fragment. Raises `ValueError`, `TypeError` or `KeyError` if the data is invalid."""
    if data["version"] != VERSION:
        raise ValueError(f"unsupported version {data['version']!r} of a fragment; this process supports {VERSION}")
    function = _text(data["function"])
    if function not in (LATEST, TIMESTAMP) and function not in WINDOW_FUNCTIONS:
        raise ValueError(f"unknown function {function!r} over range vectors")
    ends, times = _grid(data["ends"]), _grid(data["times"])
    if ends.count != times.count:
        raise ValueError(f"the fragment has {ends.count} windows for {times.count} steps")
    parameters = tuple(_parameter(one, ends.count) for one in data["parameters"])
    expected = WINDOW_FUNCTIONS[function].parameters if function in WINDOW_FUNCTIONS else 0
    if len(parameters) != expected:
        raise ValueError(f"{function} has {len(parameters)} parameters, not {expected}")
    return Fragment(
        tuple(Matcher(_text(label), MatchOp(op), _text(value)) for label, op, value in data["matchers"]),
        function,
        ends,
        _integer(data["window"]),
        times,
        parameters,
        tuple(_link(one, ends.count) for one in data["chain"]),
        None if data["grouping"] is None else _grouping(data["grouping"], ends.count),
    )


def _grid_to_json(grid: Grid) -> list[int]:
    return [grid.start, grid.step, grid.count]


def _grid(data: Any) -> Grid:
    start, step, count = map(_integer, data)
    if step < 0 or not 0 <= count <= MAX_STEPS:
        raise ValueError(f"invalid grid: {count} steps of {step} ms")
    return Grid(start, step, count)


def _parameter_to_json(parameter: Parameter) -> str:
    # Not as numbers, because JSON has no NaN or infinities.
    return struct.pack(f"<{len(parameter)}d", *parameter).hex()


def _parameter(data: Any, count: int) -> Parameter:
    packed = bytes.fromhex(data)
    if len(packed) % 8:
        raise ValueError(f"a parameter has {len(packed)} bytes, which is not a multiple of 8")
    numbers = struct.unpack(f"<{len(packed) // 8}d", packed)
    if len(numbers) not in (1, count):
        raise ValueError(f"a parameter has {len(numbers)} numbers for {count} steps")
    return numbers


def _link_to_json(link: Link) -> list[Any]:
    match link:
        case MapLink(function=function, parameters=parameters):
            return ["map", function, [_parameter_to_json(one) for one in parameters]]
        case NegateLink():
            return ["negate"]
        case OperatorLink(operator=operator, scalar=scalar):
            return ["operator", operator.value, _parameter_to_json(scalar), link.scalar_is_left, link.returns_bool]


def _link(data: Any, count: int) -> Link:
    match data:
        case ["map", str(function), list(parameters)]:
            if function not in ELEMENTWISE:
                raise ValueError(f"unknown function {function!r} of single values")
            # The first PromQL parameter is the vector.
            maximum, optional = len(FUNCTIONS[function].parameters) - 1, FUNCTIONS[function].optional
            if not maximum - optional <= len(parameters) <= maximum:
                raise ValueError(f"{function} has {len(parameters)} parameters, not {maximum}")
            return MapLink(function, tuple(_parameter(one, count) for one in parameters))
        case ["negate"]:
            return NegateLink()
        case ["operator", str(operator), str(scalar), bool(scalar_is_left), bool(returns_bool)]:
            return OperatorLink(Operator(operator), _parameter(scalar, count), scalar_is_left, returns_bool)
    raise ValueError(f"{data!r} is not a link of a chain")


def _grouping_parameter_to_json(parameter: Parameter | str | None) -> list[str] | None:
    match parameter:
        case None:
            return None
        case str():
            return ["label", parameter]
        case _:
            return ["numbers", _parameter_to_json(parameter)]


def _grouping(data: Any, count: int) -> Grouping:
    aggregator, labels, is_without, parameter = data
    if type(is_without) is not bool:
        raise TypeError(f"{is_without!r} is not a boolean")
    known: Parameter | str | None
    match parameter:
        case None:
            known = None
        case ["label", str(label)]:
            known = label
        case ["numbers", str(numbers)]:
            known = _parameter(numbers, count)
        case _:
            raise ValueError(f"{parameter!r} is not a parameter of an aggregation")
    named = Aggregator(aggregator)
    if type(known) is not _PARAMETERS.get(named, NoneType):
        raise ValueError(f"{parameter!r} is not a parameter of {named}")
    return Grouping(named, tuple(map(_text, labels)), is_without, known)


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise TypeError(f"{data!r} is not a string")
    return data


def _integer(data: Any) -> int:
    if type(data) is not int or not -(1 << 62) < data < 1 << 62:
        raise ValueError(f"{data!r} is not a valid number of milliseconds")
    return data
