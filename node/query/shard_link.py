"""The front's link to one shard: a few connections to its process, which outlive it."""

import asyncio
from pathlib import Path

from strandline.node.query.answer_memory import MemoryLease
from strandline.node.query.answer_messages import answer_of
from strandline.node.query.answers import Answer
from strandline.node.query.frames import FrameDamaged, decode_frame
from strandline.node.query.index_version import IndexVersion, IndexVersionReader, version_path
from strandline.node.query.link_connection import Frame, LinkConnection
from strandline.node.query.link_socket import SMALL_MESSAGE, LinkBroken
from strandline.node.query.lookup_frames import DECLINED, lookups_path
from strandline.node.query.queries import QueryUnavailable
from strandline.node.workers import Workers

# So many connections are kept for the next queries.
_KEPT = 16
# So many look-ups are with a shard's JVM at a time.
_MAX_LOOKUPS = 16
# When the JVM of a shard does not listen, this long passes before it is tried again.
_NO_LOOKUPS_S = 1.0


class ShardLink:
    """Asks the shard whose process listens at a path. It belongs to one event loop."""

    def __init__(self, path: Path, shard: int, workers: Workers) -> None:
        """Nothing is connected before the first query. `workers` read answers that are long."""
        self.shard = shard
        self._path, self._workers = path, workers
        self._link, self._lookups = _Pool(path), _Pool(lookups_path(path))
        self._looking_up, self._no_lookups_until = 0, float("-inf")
        self._version: tuple[IndexVersionReader, LinkConnection] | None = None

    async def look_up(self, frame: bytes, memory: MemoryLease) -> Answer | None:
        """What the shard's JVM answers to a look-up of `lookup_frames`, without Python in between; None if it does not,
        for whatever reason: then `ask` has to.
        """
        if self._looking_up >= _MAX_LOOKUPS or self._no_lookups_until > asyncio.get_running_loop().time():
            return None
        self._looking_up += 1
        try:
            message = decode_frame(await self._lookups.exchange(frame, memory))
            return answer_of(message) if message.kind != DECLINED else None
        except FrameDamaged:
            return None
        except (LinkBroken, OSError):
            self._no_lookups_until = asyncio.get_running_loop().time() + _NO_LOOKUPS_S
            return None
        finally:
            self._looking_up -= 1

    async def request(self, frame: bytes, memory: MemoryLease) -> Answer:
        """Send a query to the shard's process, and return its answer.

        Raises the shard's errors as they were raised there, and `QueryUnavailable` if its process is not there.
        """
        try:
            received = await self._exchange(frame, memory)
            if len(received) <= SMALL_MESSAGE:
                return answer_of(decode_frame(received))
            return await self._workers.run(lambda: answer_of(decode_frame(received)))
        except FrameDamaged as error:
            raise QueryUnavailable(
                f"shard {self.shard} sent an answer that can't be read: {error.message}", remedy=error.remedy
            ) from error

    def index_version(self) -> IndexVersion | None:
        """The version of the lists that the shard gives now; None if they should not be kept, or it is not known."""
        self._drop_version_of_the_past()
        return self._version[0].read() if self._version is not None else None

    def close(self) -> None:
        """Close the connections that are not in use, and the others as they come back. Closing twice does nothing."""
        self._link.close()
        self._lookups.close()
        if self._version is not None:
            reader, _ = self._version
            self._version = None
            reader.close()

    async def _exchange(self, frame: bytes, memory: MemoryLease) -> Frame:
        try:
            received = await self._link.exchange(frame, memory)
        except BlockingIOError as error:
            raise QueryUnavailable(
                f"the process of shard {self.shard} takes no more connections now", remedy="Ask again in a while"
            ) from error
        except OSError as error:
            raise QueryUnavailable(
                f"shard {self.shard} is not running: nothing listens at {self._path.name}",
                remedy="Ask again in a while; the status page shows what became of it",
            ) from error
        except LinkBroken as error:
            raise QueryUnavailable(
                f"the process of shard {self.shard} ended before it had answered: {error.message}",
                remedy="Ask again in a while; the status page shows what became of it",
            ) from error
        self._drop_version_of_the_past()
        if self._version is None:
            self._open_version()
        return received

    def _drop_version_of_the_past(self) -> None:
        """Let go of the page of a process that has ended."""
        if self._version is not None and not self._version[1].is_open:
            self._version[0].close()
            self._version = None

    def _open_version(self) -> None:
        """Map the page of the process that has just answered. By the end of a connection one sees that of the process:
        one of those that are kept will do.
        """
        connection = self._link.newest()
        if connection is not None:
            try:
                self._version = (IndexVersionReader(version_path(self._path)), connection)
            except (OSError, ValueError):
                return  # It publishes none.


class _Pool:
    """Connections to a path, kept for the next exchanges."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[LinkConnection] = []
        self._is_closed = False

    async def exchange(self, frame: bytes, memory: MemoryLease) -> Frame:
        """Over a connection that was kept, or a new one. Raises `OSError` if nothing listens, and as
        `LinkConnection.exchange` does.
        """
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_open:
                continue
            try:
                received = await connection.exchange(frame, memory)
            except LinkBroken as error:
                if not error.clean:
                    raise
                # It was kept from before a restart of the process: nothing has read the frame.
                continue
            self._keep(connection)
            return received
        connection = await self._connect()
        received = await connection.exchange(frame, memory)
        self._keep(connection)
        return received

    def newest(self) -> LinkConnection | None:
        """The connection that was used last, if it is not in use now."""
        return self._idle[-1] if self._idle else None

    def close(self) -> None:
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    def _keep(self, connection: LinkConnection) -> None:
        if self._is_closed or len(self._idle) >= _KEPT:
            connection.close()
        else:
            self._idle.append(connection)

    async def _connect(self) -> LinkConnection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_unix_connection(LinkConnection, str(self._path))
        return connection
