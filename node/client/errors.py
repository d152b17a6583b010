"""The errors of requests to a node."""

import re
from collections.abc import Iterable, Mapping

from strandline.errors import ExitCode, Fatal, Retryable

# The position in errors of PromQL's parser, here and in Prometheus.
_POSITION = re.compile(r"\b([0-9]+):([0-9]+): parse error")
_MAX_LINE_LENGTH = 100


class NodeUnreachable(Retryable):
    """There is no answer from the address, or not in time."""


class NodeNotReady(Retryable):
    """The node is running, but can't answer queries for data yet. The message is its reason."""

    exit_code = ExitCode.NOT_READY


class NodeBusy(Retryable):
    """The node cancelled or rejected the query: it took too long, or the node is overloaded."""


class NodeRefused(Fatal):
    """The node refused a valid query: it exceeds a limit, or is too expensive."""


class QuestionWrong(Fatal):
    """The node rejected the request as invalid."""

    exit_code = ExitCode.USAGE


class QueryWrong(QuestionWrong):
    """The node can't parse the query. If the message has a position, the query is shown with a caret there."""

    def __init__(self, message: str, query: str) -> None:
        super().__init__(message)
        found = _POSITION.search(message)
        self.query = query
        self.position = (int(found[1]), int(found[2])) if found else None

    def blocks(self) -> Iterable[str]:
        """The line of the query, and a caret below the position."""
        return () if self.position is None else with_caret(self.query, *self.position)

    def details(self) -> Mapping[str, object]:
        """The position, for JSON."""
        return {} if self.position is None else {"line": self.position[0], "column": self.position[1]}


def with_caret(query: str, line: int, column: int) -> list[str]:
    """A line of a query, and a caret below a column; both count from 1. A long line is cut around the caret."""
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
    """The token is missing or wrong."""


class NodeUntrusted(Fatal):
    """The server's certificate could not be verified."""


class NotANode(Fatal):
    """The server's answer is not one of Prometheus' API."""
