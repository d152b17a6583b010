"""Queries of a command line, parsed, with errors that show the place in the query."""

from collections.abc import Callable
from typing import TypeVar

from strandline.node.client.errors import QueryWrong
from strandline.promql.errors import ParseError

Value = TypeVar("Value")


def read(query: str, reader: Callable[[str], Value]) -> Value:
    """What `reader` makes of a query. Raises `QueryWrong`."""
    try:
        return reader(query)
    except ParseError as error:
        raise QueryWrong(error.message, query) from error
