"""The supervisor's side of the control socket: sends the node's state to the front and serves its requests."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import structlog

from strandline.errors import StrandlineError
from strandline.node.query.frames import FrameDamaged, Message
from strandline.node.supervisor.control_messages import (
    DONE,
    RELOAD,
    RESTART,
    STATE,
    RequestRefused,
    close_connection,
    error_message,
    read_message,
    reloaded_message,
    write_message,
)
from strandline.node.supervisor.node_state import NodeState
from strandline.node.supervisor.reloading import Reload

_LOG = structlog.get_logger(__name__)
_MAX_REQUEST_BYTES = 1 << 16
# If the front has the newest state, it is sent the next one, or the same one again after this time.
_STATE_WAIT_S = 2.0


class Controlled(Protocol):
    """The requests that the front may send to the node. Called in the event loop."""

    def state(self, version: int) -> NodeState:
        """The current state of the node, with this version number."""
        ...

    def restart_shard(self, shard: int) -> None:
        """Start a new process for a shard. Raises `NoSuchShard`."""
        ...

    async def reload(self) -> Reload:
        """Reload the settings. If they are invalid, raises their error and changes nothing."""
        ...


class ControlServer:
    """Serves from `start` to `close`. Its methods belong to one event loop; `publish` may be called by any thread."""

    def __init__(self, path: Path, node: Controlled) -> None:
        """The folder of `path` must be private to this user: every client that can connect is authorised."""
        self._path, self._node = path, node
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._version = 0
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._front_settings = 0
        self._front_updated = asyncio.Event()

    async def start(self) -> None:
        """Listen."""
        self._loop = asyncio.get_running_loop()
        self._path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, str(self._path))
        self._path.chmod(0o600)

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def publish(self) -> None:
        """Send the new state to the front."""
        if self._loop is not None:
            # The loop is closed before the supervisor's thread has ended.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._published)

    async def front_has_settings(self, settings: int, is_there: Callable[[], bool], timeout: float) -> bool:
        """Wait until the front applies this version of the settings. False after the timeout, or if the front is not
        running.
        """
        deadline = asyncio.get_running_loop().time() + timeout
        while self._front_settings < settings:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or not is_there():
                return False
            self._front_updated.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, 0.5)):
                    await self._front_updated.wait()
        return True

    def _published(self) -> None:
        self._version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        try:
            while not self._is_closed:
                request = await read_message(reader, _MAX_REQUEST_BYTES)
                await write_message(writer, await self._reply(request))
        except (EOFError, OSError, asyncio.CancelledError):
            return
        except FrameDamaged as error:
            _LOG.warning("control connection closed after a damaged message", error=str(error))
        finally:
            await close_connection(writer)

    async def _reply(self, request: Message) -> Message:
        try:
            return await self._answer(request)
        except StrandlineError as error:
            return error_message(error)
        except (KeyError, TypeError, ValueError) as error:
            return error_message(RequestRefused(f"the request {request.kind!r} is malformed: {error}"))

    async def _answer(self, request: Message) -> Message:
        if request.kind == STATE:
            return await self._state(int(request.fields["after"]), int(request.fields["settings"]))
        if request.kind == RESTART:
            self._node.restart_shard(int(request.fields["shard"]))
            return Message(DONE, {})
        if request.kind == RELOAD:
            outcome = await self._node.reload()
            return reloaded_message(outcome.changes)
        raise RequestRefused(f"the supervisor does not know the request {request.kind!r}", remedy=_SAME_VERSION)

    async def _state(self, after: int, settings: int) -> Message:
        self._front_settings = settings
        self._front_updated.set()
        if after == self._version:
            # Not `wait_for`, which may swallow a cancellation.
            with suppress(TimeoutError):
                async with asyncio.timeout(_STATE_WAIT_S):
                    await self._changed.wait()
        return Message(STATE, self._node.state(self._version).to_fields())


_SAME_VERSION = "Restart the node: the supervisor and the front must have the same version"
