"""What may come of asking a node, other than an answer."""

import re
from collections.abc import Iterable, Mapping

from strandline.errors import ExitCode, Fatal, Retryable

# How PromQL's parser, here and in Prometheus, says where a fault is.
_POSITION = re.compile(r"\b([0-9]+):([0-9]+): parse error")
_MAX_LINE_LENGTH = 100


class NodeUnreachable(Retryable):
    """Nobody answers at the address, or not in time."""


class NodeNotReady(Retryable):
    """The node is there, and can't answer questions about data yet. Its own reason is the message."""

    exit_code = ExitCode.NOT_READY


class NodeBusy(Retryable):
    """The node gave the question up: it took too long, or too much is asked of it now."""


class NodeRefused(Fatal):
    """The node understood, and will not: a limit, or an expression that is too costly."""


class QuestionWrong(Fatal):
    """The node can't make sense of the question."""

    exit_code = ExitCode.USAGE


class QueryWrong(QuestionWrong):
    """The node can't parse the query. If its message has a position, the query is shown with a caret there."""

    def __init__(self, message: str, query: str) -> None:
        super().__init__(message)
        found = _POSITION.search(message)
        self.query = query
        self.position = (int(found[1]), int(found[2])) if found else None

    def blocks(self) -> Iterable[str]:
        """The line of the query, and a caret below the place."""
        return () if self.position is None else with_caret(self.query, *self.position)

    def details(self) -> Mapping[str, object]:
        """The place."""
        return {} if self.position is None else {"line": self.position[0], "column": self.position[1]}


def with_caret(query: str, line: int, column: int) -> list[str]:
    """A line of a query, and a caret below a column of it; both count from 1. A long line is cut around the place."""
    lines = query.split("\n")
    if not 1 <= line <= len(lines):
        return []
    shown = "".join(character if character.isprintable() else " " for character in lines[line - 1])
    at = min(max(column, 1), len(shown) + 1) - 1
    first = max(0, at - _MAX_LINE_LENGTH // 2)
    part = shown[first : first + _MAX_LINE_LENGTH]
    before, behind = "..." if first else "", "..." if first + _MAX_LINE_LENGTH < len(shown) else ""
    return [f"  {before}{part}{behind}", f"  {' ' * (len(before) + at - first)}^"]


class AccessDenied(Fatal):
    """The token is missing, or not the right one."""


class NodeUntrusted(Fatal):
    """TLS: who answers can't show that it is the node."""


class NotANode(Fatal):
    """Somebody answers, but not as Prometheus' API does."""
