"""The front's link to one shard: pooled connections to its process."""

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

# Idle connections that are kept.
_MAX_IDLE = 16
# Concurrent lookups at a shard's JVM.
_MAX_LOOKUPS = 16
# How long lookups are skipped after the shard's JVM did not answer.
_LOOKUP_RETRY_S = 1.0


class ShardLink:
    """Sends requests to the shard whose process listens at a path. For one event loop. The link outlives the
    process.
    """

    def __init__(self, path: Path, shard: int, workers: Workers) -> None:
        """The first request connects. `workers` decode long answers."""
        self.shard = shard
        self._path, self._workers = path, workers
        self._link, self._lookups = _Pool(path), _Pool(lookups_path(path))
        self._active_lookups, self._lookups_disabled_until = 0, float("-inf")
        self._version: tuple[IndexVersionReader, LinkConnection] | None = None

    async def look_up(self, frame: bytes, memory: MemoryLease) -> Answer | None:
        """The answer of the shard's JVM to a lookup of `lookup_frames`, without Python in the shard's process; None if
        it does not answer, for any reason. Then use `request`.
        """
        if self._active_lookups >= _MAX_LOOKUPS or self._lookups_disabled_until > asyncio.get_running_loop().time():
            return None
        self._active_lookups += 1
        try:
            message = decode_frame(await self._lookups.exchange(frame, memory))
            return answer_of(message) if message.kind != DECLINED else None
        except FrameDamaged:
            return None
        except (LinkBroken, OSError):
            self._lookups_disabled_until = asyncio.get_running_loop().time() + _LOOKUP_RETRY_S
            return None
        finally:
            self._active_lookups -= 1

    async def request(self, frame: bytes, memory: MemoryLease) -> Answer:
        """Send a request to the shard's process, and return its answer.

        Raises the errors that the shard raised, and `QueryUnavailable` if its process does not answer.
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
        """The current version of the shard's label lists; None if it is unknown, or if they must not be cached."""
        self._close_outdated_version()
        return self._version[0].read() if self._version is not None else None

    def close(self) -> None:
        """Close idle connections now, and the others after their exchange. Idempotent."""
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
                f"the process of shard {self.shard} accepts no more connections now", remedy="Try again later"
            ) from error
        except OSError as error:
            raise QueryUnavailable(
                f"shard {self.shard} is not running: nothing listens at {self._path.name}",
                remedy="Try again later; the status page shows the shard's state",
            ) from error
        except LinkBroken as error:
            raise QueryUnavailable(
                f"the process of shard {self.shard} ended before it had answered: {error.message}",
                remedy="Try again later; the status page shows the shard's state",
            ) from error
        self._close_outdated_version()
        if self._version is None:
            self._open_version()
        return received

    def _close_outdated_version(self) -> None:
        """Unmap the page of a process that has ended."""
        if self._version is not None and not self._version[1].is_open:
            self._version[0].close()
            self._version = None

    def _open_version(self) -> None:
        """Map the page of the process that has just answered. The end of an idle connection to it will show when the
        process has ended.
        """
        connection = self._link.newest()
        if connection is not None:
            try:
                self._version = (IndexVersionReader(version_path(self._path)), connection)
            except (OSError, ValueError):
                return  # The process publishes no version.


class _Pool:
    """A pool of connections to a path."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[LinkConnection] = []
        self._is_closed = False

    async def exchange(self, frame: bytes, memory: MemoryLease) -> Frame:
        """Exchange frames over an idle connection or a new one. Raises `OSError` if nothing listens, and what
        `LinkConnection.exchange` raises.
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
                # The connection was to an earlier process, and nothing has read the frame.
                continue
            self._keep(connection)
            return received
        connection = await self._connect()
        received = await connection.exchange(frame, memory)
        self._keep(connection)
        return received

    def newest(self) -> LinkConnection | None:
        """The idle connection that was used last."""
        return self._idle[-1] if self._idle else None

    def close(self) -> None:
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    def _keep(self, connection: LinkConnection) -> None:
        if self._is_closed or len(self._idle) >= _MAX_IDLE:
            connection.close()
        else:
            self._idle.append(connection)

    async def _connect(self) -> LinkConnection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_unix_connection(LinkConnection, str(self._path))
        return connection
