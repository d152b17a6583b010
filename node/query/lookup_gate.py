"""When the JVM of a shard's process may answer look-ups by itself, and where."""

from pathlib import Path

import structlog

from strandline.errors import StrandlineError
from strandline.index.lookup_server import LookupServer
from strandline.index.part_columns import PartColumns
from strandline.index.part_key_index import PartKeyIndex

_LOG = structlog.get_logger(__name__)


class LookupGate:
    """Open while answers from the index have nothing lacking. One thread at a time opens and shuts it."""

    def __init__(self, path: Path | None) -> None:
        """Without a path it stays shut."""
        self._server = LookupServer(path) if path is not None else None

    def open(self, index: PartKeyIndex, columns: PartColumns) -> None:
        """Let look-ups be answered from these. If that can't be done they are answered over the link, as all else is,
        and it is not tried again.
        """
        if self._server is None:
            return
        try:
            self._server.open(index, columns)
        except StrandlineError as error:
            _LOG.warning("look-ups are answered the slower way", error=str(error))
            self.close()

    def shut(self) -> None:
        """Let none be answered any more, also of those that are being looked up."""
        if self._server is not None:
            self._server.shut()

    def close(self) -> None:
        """The same for good. Closing twice does nothing."""
        server, self._server = self._server, None
        if server is not None:
            try:
                server.close()
            except StrandlineError as error:
                # Nothing depends on it: whatever is left of it declines all.
                _LOG.warning("the server of look-ups could not be closed", error=str(error))
