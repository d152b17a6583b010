"""Step-invariant expressions: those whose selectors all have `@`, so that their value is the same at every step."""

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

# The values of these functions depend on the step even if their arguments do not.
_BY_STEP = frozenset(
    {
        "day_of_month",
        "day_of_week",
        "day_of_year",
        "days_in_month",
        "hour",
        "minute",
        "month",
        "predict_linear",
        "time",
        "timestamp",
        "year",
    }
)


def unwrapped(expression: Expression) -> Expression:
    """The expression without its outer parentheses."""
    while isinstance(expression, Parentheses):
        expression = expression.inner
    return expression


def is_invariant(expression: Expression) -> bool:  # noqa: PLR0911 - one for each kind
    """Whether the value is the same at every step.

    As in Prometheus, the parameter of an aggregation is ignored: `topk(time(), m @ 0)` is evaluated once.
    """
    match expression:
        case NumberLiteral() | StringLiteral():
            return True
        case VectorSelector(at=at) | Subquery(at=at):
            return at is not None
        case MatrixSelector(selector=selector):
            return selector.at is not None
        case Aggregation(inner=inner) | Parentheses(inner=inner) | Negation(inner=inner):
            return is_invariant(inner)
        case Binary(left=left, right=right):
            return is_invariant(left) and is_invariant(right)
        case Call(function=function, arguments=arguments):
            if function.name == "timestamp" and isinstance(unwrapped(arguments[0]), VectorSelector):
                return is_invariant(arguments[0])
            return function.name not in _BY_STEP and all(map(is_invariant, arguments))


def is_worth_hoisting(expression: Expression) -> bool:
    """Whether the expression is evaluated once and its value repeated: it is invariant, not a literal, which costs
    nothing, and not a range, which the enclosing function reads.
    """
    inner = unwrapped(expression)
    return not isinstance(inner, NumberLiteral | StringLiteral | MatrixSelector | Subquery) and is_invariant(inner)
