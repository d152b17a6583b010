"""When the event loop asks a question itself instead of leaving it to a thread."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiohttp import web

from strandline.node.query.quick import QuickQueries

# In bytes of the question: what takes longer to read is a thread's work. Regular expressions take the longest.
_SHORT, _SHORT_WITH_EXPRESSION = 2 << 10, 256
# So many questions may be under way like this. They take no thread, so nothing else bounds what shards work on.
_MOST = 8


def _always() -> bool:
    return True


class QuickWay:
    """For questions that are short to read, while few such are under way. It belongs to one event loop."""

    def __init__(self, queries: QuickQueries, *, is_open: Callable[[], bool] = _always, most: int = _MOST) -> None:
        """`is_open` says whether kernels are loaded: an event loop must not wait for them."""
        self.queries = queries
        self._is_open, self._free = is_open, most

    def suits(self, request: web.Request) -> bool:
        """Whether a request may take it."""
        if request.method != "GET" or not self._is_open():
            return False
        question = request.rel_url.query_string
        return len(question) <= (_SHORT_WITH_EXPRESSION if "~" in question else _SHORT)

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Take a place until the block ends; whether there was one."""
        if not self._free:
            yield False
            return
        self._free -= 1
        try:
            yield True
        finally:
            self._free += 1
