"""A cache of parsed queries: a dashboard sends the same ones every few seconds."""

from collections import OrderedDict
from threading import Lock
from typing import Final

from strandline.promql.expressions import Expression
from strandline.promql.parser import parse

MAX_QUERIES: Final = 256
MAX_CHARACTERS: Final = 256 * 1024
"""Total length of the cached texts. A tree takes at most a few hundred bytes per character."""


class QueryCache:
    """The most recently used queries, limited in number and in total characters. Thread-safe.

    Queries that do not parse are not cached.
    """

    def __init__(self, max_queries: int = MAX_QUERIES, max_characters: int = MAX_CHARACTERS) -> None:
        self._max_queries = max_queries
        self._max_characters = max_characters
        self._parsed: OrderedDict[str, Expression] = OrderedDict()
        self._characters = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._parsed)

    def parse(self, text: str) -> Expression:
        """The tree of a query. Raises `ParseError`."""
        with self._lock:
            known = self._parsed.get(text)
            if known is not None:
                self._parsed.move_to_end(text)
                return known
        # Outside the lock: two threads may parse the same query and get equal trees.
        expression = parse(text)
        with self._lock:
            self._keep(text, expression)
        return expression

    def _keep(self, text: str, expression: Expression) -> None:
        if text in self._parsed or len(text) > self._max_characters:
            return
        self._parsed[text] = expression
        self._characters += len(text)
        while len(self._parsed) > self._max_queries or self._characters > self._max_characters:
            dropped, _ = self._parsed.popitem(last=False)
            self._characters -= len(dropped)
