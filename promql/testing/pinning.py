"""Pins every selector of an expression to one time with `@`, so that its value is the same at every step."""

from dataclasses import replace

from strandline.promql.expressions import (
    Aggregation,
    Binary,
    Call,
    Expression,
    MatrixSelector,
    Negation,
    NumberLiteral,
    Parentheses,
    StringLiteral,
    Subquery,
    VectorSelector,
)

# The values of these functions depend on the evaluation timestamp even if their arguments are pinned.
_BY_TIME = frozenset(
    {
        "day_of_month",
        "day_of_week",
        "day_of_year",
        "days_in_month",
        "end",
        "hour",
        "minute",
        "month",
        "predict_linear",
        "range",
        "start",
        "step",
        "time",
        "timestamp",
        "year",
    }
)


def pinned(expression: Expression, time: int) -> Expression | None:
    """The expression with `@ time` added to selectors and subqueries without `@`. The inside of subqueries is not
    changed. None if a function depends on the evaluation timestamp.
    """
    try:
        return _pinned(expression, time)
    except _DependsOnTime:
        return None


class _DependsOnTime(Exception):  # noqa: N818 - not an error
    pass


def _pinned(expression: Expression, time: int) -> Expression:  # noqa: PLR0911 - one for each kind
    match expression:
        case NumberLiteral() | StringLiteral():
            return expression
        case VectorSelector(at=at) | Subquery(at=at):
            return replace(expression, at=time) if at is None else expression
        case MatrixSelector(selector=selector):
            return expression if selector.at is not None else replace(expression, selector=replace(selector, at=time))
        case Aggregation(inner=inner, parameter=parameter):
            argument = None if parameter is None else _pinned(parameter, time)
            return replace(expression, inner=_pinned(inner, time), parameter=argument)
        case Parentheses(inner=inner) | Negation(inner=inner):
            return replace(expression, inner=_pinned(inner, time))
        case Binary(left=left, right=right):
            return replace(expression, left=_pinned(left, time), right=_pinned(right, time))
        case Call(function=function, arguments=arguments):
            if function.name in _BY_TIME:
                raise _DependsOnTime
            return replace(expression, arguments=tuple(_pinned(one, time) for one in arguments))
