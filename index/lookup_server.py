"""Look-ups of a handful of series, answered by threads of the JVM over a socket of their own.

Between a question and its answer there is no Python: to wait for its lock while a shard reads takes longer than to find
a series. What is asked and answered is laid out as `strandline.node.query.lookup_frames` has it.
"""

from pathlib import Path

from strandline.index.part_columns import PartColumns
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.part_memory import PartMemory
from strandline.index.pylucene.classes import LookupServer as JavaServer
from strandline.index.pylucene.classes import java
from strandline.index.pylucene.failures import java_failures

# Java maps no more at once than it can count, in bytes.
_MAX_ROWS = (2**31 - 1) // 8


class LookupServer:
    """Listens at a path, for processes of the same user, once it was opened for the first time. One thread at a time
    opens and shuts it.
    """

    def __init__(self, path: Path) -> None:
        """A socket that an earlier process left is removed."""
        self._path = path
        if path.is_socket():
            path.unlink()
        self._server: JavaServer | None = None
        self._opened: tuple[PartKeyIndex, PartMemory] | None = None

    def open(self, index: PartKeyIndex, columns: PartColumns) -> None:
        """Answer, from an index and from what a shard's columns say of its keys as they are now and become. To be
        called again when the columns have moved; otherwise that does nothing.
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
        """Decline whatever is asked, also what is being looked up just now."""
        if self._opened is not None and self._server is not None:
            with java_failures():
                self._server.shut()
        self._opened = None

    def close(self) -> None:
        """End it. Closing twice does nothing."""
        self._opened, server, self._server = None, self._server, None
        if server is not None:
            with java_failures():
                server.close()
