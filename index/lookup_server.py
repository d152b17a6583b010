"""Lookups of a few series, answered by threads of the JVM over a separate socket.

No Python runs between a request and its answer: waiting for the GIL while a shard reads takes longer than finding a
series. `strandline.node.query.lookup_frames` has the layout of requests and answers.
"""

from pathlib import Path

from strandline.index.part_columns import PartColumns
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.part_memory import PartMemory
from strandline.index.pylucene.classes import LookupServer as JavaServer
from strandline.index.pylucene.classes import java
from strandline.index.pylucene.failures import java_failures

# Java maps at most 2^31 - 1 bytes at once.
_MAX_ROWS = (2**31 - 1) // 8


class LookupServer:
    """Listens at a path, for processes of the same user, after the first `open`. One thread at a time calls `open` and
    `shut`.
    """

    def __init__(self, path: Path) -> None:
        """A socket that an earlier process left is deleted."""
        self._path = path
        if path.is_socket():
            path.unlink()
        self._server: JavaServer | None = None
        self._opened: tuple[PartKeyIndex, PartMemory] | None = None

    def open(self, index: PartKeyIndex, columns: PartColumns) -> None:
        """Answer lookups from an index and from the present and future values of a shard's columns. To be called again
        when the columns have moved; otherwise repeated calls have no effect.
        """
        memory = columns.memory
        if self._opened is not None and self._opened[0] is index and self._opened[1] is memory:
            return
        if memory.rows > _MAX_ROWS:
            self.shut()
            return
        if self._server is None:
            with java_failures():
                self._server = java().lookup_server(str(self._path))
        index.serve_lookups(self._server, memory)
        self._opened = (index, memory)

    def shut(self) -> None:
        """Decline all requests, including those in progress."""
        if self._opened is not None and self._server is not None:
            with java_failures():
                self._server.shut()
        self._opened = None

    def close(self) -> None:
        """Stop the server. Closing twice has no effect."""
        self._opened, server, self._server = None, self._server, None
        if server is not None:
            with java_failures():
                server.close()
