"""Parses the queries of a command line, with errors that show the position in the query."""

from collections.abc import Callable
from typing import TypeVar

from strandline.node.client.errors import QueryWrong
from strandline.promql.errors import ParseError

Value = TypeVar("Value")


def read(query: str, reader: Callable[[str], Value]) -> Value:
    """The result of `reader`. Raises `QueryWrong`, with the position of the error."""
    try:
        return reader(query)
    except ParseError as error:
        raise QueryWrong(error.message, query) from error
