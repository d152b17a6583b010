"""Whether the JVM of a shard's process may answer lookups."""

from pathlib import Path

import structlog

from strandline.errors import StrandlineError
from strandline.index.lookup_server import LookupServer
from strandline.index.part_columns import PartColumns
from strandline.index.part_key_index import PartKeyIndex

_LOG = structlog.get_logger(__name__)


class LookupGate:
    """Open while answers from the index are complete. One thread at a time may open and shut it."""

    def __init__(self, path: Path | None) -> None:
        """`path` is the socket of the lookup server. Without a path the gate stays shut."""
        self._server = LookupServer(path) if path is not None else None

    def open(self, index: PartKeyIndex, columns: PartColumns) -> None:
        """Answer lookups from this index. If that fails, the shard's process answers them like other requests, and the
        gate stays shut.
        """
        if self._server is None:
            return
        try:
            self._server.open(index, columns)
        except StrandlineError as error:
            _LOG.warning(
                "the lookup server failed; lookups are answered by the shard's process, which is slower",
                error=str(error),
            )
            self.close()

    def shut(self) -> None:
        """Decline all lookups, including those in progress."""
        if self._server is not None:
            self._server.shut()

    def close(self) -> None:
        """Shut the gate for good. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            try:
                server.close()
            except StrandlineError as error:
                # Harmless: a server that is shut declines everything.
                _LOG.warning("the lookup server could not be closed", error=str(error))
