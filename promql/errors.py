"""Errors of parsing and of evaluating a query."""

from strandline.errors import ExitCode, Fatal
from strandline.promql.expressions import Span


class ParseError(Fatal):
    """The query has a syntax error or a type error. HTTP answers 400, "bad_data".

    `fault` is the message without the position. `line` and `column` count from 1, columns in code points.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, span: Span, line: int, column: int) -> None:
        super().__init__(message)
        self.span = span
        self.line = line
        self.column = column
        self.fault = message.partition("parse error: ")[2] or message


class EvaluationError(Fatal):
    """The expression can't be evaluated over the selected data. HTTP answers 422, "execution"."""


class TooManyStepsError(EvaluationError):
    """The query has more steps than the limit, usually because of its subqueries."""

    def __init__(self, max_steps: int, total_steps: int, limit: int) -> None:
        super().__init__(
            "query processing would load too many samples into memory in query execution: one part has "
            f"{max_steps:,} steps, and all parts together have {total_steps:,}; the limit for one part is {limit:,}",
            remedy="Choose longer steps or shorter ranges for subqueries",
        )


def parse_error(query: str, span: Span, fault: str) -> ParseError:
    """The error for a part of a query, with Prometheus' message."""
    line = query.count("\n", 0, span.start) + 1
    column = span.start - query.rfind("\n", 0, span.start)
    position = f"{line}:{column}" if query else "unknown position"
    return ParseError(f"{position}: parse error: {fault}", span, line, column)
