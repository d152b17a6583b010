"""The tree of an expression as JSON, as `/api/v1/parse_query` returns it for Prometheus' web UI."""

from strandline.promql.durations import literal_milliseconds
from strandline.promql.expressions import (
    Aggregation,
    At,
    AtBound,
    Binary,
    Call,
    Duration,
    DurationArithmetic,
    DurationNegation,
    DurationNumber,
    DurationParentheses,
    DurationRange,
    DurationStep,
    Expression,
    Matching,
    MatrixSelector,
    Negation,
    NumberLiteral,
    Parentheses,
    StringLiteral,
    Subquery,
    VectorSelector,
)
from strandline.promql.functions import Function
from strandline.promql.go_text import as_utf8, plain_number

Json = dict[str, object]


def tree_of(expression: Expression) -> Json:  # noqa: PLR0911 - one for each kind
    """The tree as values for `json.dumps`."""
    match expression:
        case NumberLiteral(value=value):
            return {"type": "numberLiteral", "val": plain_number(value)}
        case StringLiteral(value=text):
            return {"type": "stringLiteral", "val": as_utf8(text)}
        case VectorSelector():
            return {"type": "vectorSelector", **_selector(expression)}
        case MatrixSelector(selector=selector, range=length):
            return {"type": "matrixSelector", **_selector(selector), **_duration("range", length)}
        case Subquery(inner=inner):
            return {
                "type": "subquery",
                "expr": tree_of(inner),
                **_duration("range", expression.range),
                **_duration("step", expression.step),
                **_duration("offset", expression.offset),
                **_at(expression.at),
            }
        case Call(function=function, arguments=arguments):
            return {"type": "call", "func": _function(function), "args": list(map(tree_of, arguments))}
        case Aggregation(inner=inner, parameter=parameter):
            return {
                "type": "aggregation",
                "op": expression.aggregator.value,
                "expr": tree_of(inner),
                "param": None if parameter is None else tree_of(parameter),
                "grouping": list(expression.labels),
                "without": expression.is_without,
            }
        case Binary(left=left, right=right):
            return {
                "type": "binaryExpr",
                "op": expression.operator.value,
                "lhs": tree_of(left),
                "rhs": tree_of(right),
                "matching": _matching(expression.matching),
                "bool": expression.returns_bool,
            }
        case Negation(inner=inner, is_plus=is_plus):
            return {"type": "unaryExpr", "op": "+" if is_plus else "-", "expr": tree_of(inner)}
        case Parentheses(inner=inner):
            return {"type": "parenExpr", "expr": tree_of(inner)}


def _selector(selector: VectorSelector) -> Json:
    return {
        "name": selector.name,
        "matchers": [
            {"name": matcher.label, "value": matcher.value, "type": matcher.op.value} for matcher in selector.matchers
        ],
        **_duration("offset", selector.offset),
        **_at(selector.at),
        "anchored": False,
        "smoothed": False,
    }


def _at(at: At | None) -> Json:
    is_bound = isinstance(at, AtBound)
    return {"timestamp": None if is_bound else at, "startOrEnd": str(at) if is_bound else None}


def _function(function: Function) -> Json:
    return {
        "name": function.name,
        "argTypes": [parameter.value for parameter in function.parameters],
        "variadic": -1 if function.is_variadic else function.optional,
        "returnType": function.returns.value,
    }


def _matching(matching: Matching | None) -> Json | None:
    if matching is None:
        return None
    return {
        "card": matching.cardinality.value,
        "labels": list(matching.labels),
        "on": matching.is_on,
        "include": list(matching.include),
        "fillValues": {"lhs": None, "rhs": None},
    }


def _duration(name: str, duration: Duration | None) -> Json:
    """The milliseconds of a literal; for arithmetic 0, and its tree."""
    if duration is None:
        return {name: 0, f"{name}Expr": None}
    if isinstance(duration, DurationNumber):
        return {name: literal_milliseconds(duration), f"{name}Expr": None}
    return {name: 0, f"{name}Expr": _arithmetic(duration)}


def _arithmetic(duration: Duration) -> Json:  # noqa: PLR0911 - one for each kind
    match duration:
        case DurationNumber(seconds=seconds, is_duration=is_duration):
            return {"type": "numberLiteral", "val": plain_number(seconds), "duration": is_duration}
        case DurationParentheses(inner=DurationNumber() as number):
            return {**_node("+", None, number), "wrapped": True}
        case DurationParentheses(inner=inner):
            return {**_arithmetic(inner), "wrapped": True}
        case DurationStep():
            return _node("step", None, None)
        case DurationRange():
            return _node("range", None, None)
        case DurationNegation(inner=inner):
            return _node("-", None, inner)
        case DurationArithmetic(operator=operator, left=left, right=right):
            return _node(operator.value, left, right)


def _node(op: str, left: Duration | None, right: Duration | None) -> Json:
    return {
        "type": "durationExpr",
        "op": op,
        "lhs": None if left is None else _arithmetic(left),
        "rhs": None if right is None else _arithmetic(right),
        "wrapped": False,
    }
