"""The front's end of the control socket: the node's state from the supervisor, and requests to the supervisor."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import structlog

from strandline.clock import Clock
from strandline.errors import Retryable, StrandlineError
from strandline.node.query.frames import FrameDamaged, Message
from strandline.node.status.processes import ProcessStatus, ShardProcessStatus
from strandline.node.supervisor.control_messages import (
    ERROR,
    RELOAD,
    RESTART,
    STATE,
    changes_of,
    close_connection,
    error_of,
    read_message,
    write_message,
)
from strandline.node.supervisor.node_state import NodeState
from strandline.node.supervisor.reloading import Change

_LOG = structlog.get_logger(__name__)
_MAX_STATE_BYTES = 1 << 28
_NONE_YET = -1
# A new state arrives twice a second. Without one for this long, the connection is opened again.
_STATE_TIMEOUT_S = 10.0
_RETRY_S = 0.5
# A reload may wait for Kafka and for the front itself.
_REQUEST_TIMEOUT_S = 120.0


class SupervisorUnreachable(Retryable):
    """The supervisor does not answer at its socket."""


class Link(Protocol):
    """A link to a shard."""

    def close(self) -> None:
        """Close the connections."""
        ...


L = TypeVar("L", bound=Link)


class SupervisorClient(Generic[L]):
    """The front's client of the supervisor. Its coroutines are for one event loop; the other methods are thread-safe.

    While the supervisor does not answer, the last state is used: requests to shards do not need the supervisor, and if
    the supervisor has ended, the kernel kills the front.
    """

    def __init__(
        self,
        path: Path,
        links: Callable[[int], L],
        clock: Clock,
        *,
        on_reload: Callable[[], Awaitable[None]],
    ) -> None:
        """`links` creates the link to a shard, by its number. `on_reload` is awaited when the node has applied new
        settings, and may raise if they are invalid.
        """
        self._path, self._new_link, self._clock, self._on_reload = path, links, clock, on_reload
        self._state, self._received_at = NodeState(version=_NONE_YET), clock.monotonic()
        self._links: Mapping[int, L] = {}
        self._settings: int | None = None
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Get the first state, and follow changes from then on. Raises `SupervisorUnreachable`."""
        try:
            async with asyncio.timeout(_STATE_TIMEOUT_S):
                await self._apply(await self._exchange(self._state_request()))
        except (OSError, EOFError, TimeoutError, FrameDamaged, ValueError) as error:
            raise SupervisorUnreachable(f"the supervisor does not answer at {self._path}: {error}") from error
        self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Stop following, and close the links."""
        if self._following is not None:
            self._following.cancel()
            with suppress(asyncio.CancelledError):
                await self._following
        for link in self._links.values():
            link.close()

    def state(self) -> NodeState:
        """The last state of the node."""
        return self._state

    def state_age_s(self) -> float:
        """The age of the last state."""
        return self._clock.monotonic() - self._received_at

    def shards(self) -> tuple[ShardProcessStatus, ...]:
        """The shards, in the order of their numbers."""
        return self._state.shards

    def partitions(self) -> int | None:
        """How many partitions the topic has."""
        return self._state.partitions

    def processes(self) -> tuple[ProcessStatus, ...]:
        """The front and the worker."""
        return self._state.processes

    def started_ms(self) -> int:
        """When the supervisor was started."""
        return self._state.started_at

    def waits_for(self) -> str:
        """What the supervisor waits for while the shards are unknown."""
        return self._state.waits_for

    def clients(self) -> Mapping[int, L]:
        """The links to the served shards, by number. A link does not change when its process is restarted."""
        return self._links

    async def restart_shard(self, shard: int) -> None:
        """Restart a shard's process. Raises `NoSuchShard` and `SupervisorUnreachable`."""
        await self._request(Message(RESTART, {"shard": shard}))

    async def reload(self) -> tuple[Change, ...]:
        """Make the node reload its settings, and return what has changed. Raises if they are invalid, and
        `SupervisorUnreachable`. When it returns, this front has applied them, too.
        """
        answer = await self._request(Message(RELOAD, {}))
        try:
            return changes_of(answer)
        except ValueError as error:
            raise SupervisorUnreachable(
                f"the supervisor's answer can't be read: {error}", remedy="Restart the node after an upgrade"
            ) from error

    async def _request(self, message: Message) -> Message:
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                answer = await self._exchange(message)
        except (OSError, EOFError, TimeoutError, FrameDamaged) as error:
            raise SupervisorUnreachable(
                f"the supervisor does not answer: {error}", remedy="Try again; see the node's log"
            ) from error
        if answer.kind == ERROR:
            raise error_of(answer)
        return answer

    async def _exchange(self, message: Message) -> Message:
        """The answer to one message, over a new connection."""
        reader, writer = await asyncio.open_unix_connection(str(self._path))
        try:
            await write_message(writer, message)
            return await read_message(reader, _MAX_STATE_BYTES)
        finally:
            await close_connection(writer)

    def _state_request(self) -> Message:
        settings = self._settings if self._settings is not None else 0
        return Message(STATE, {"after": self._state.version, "settings": settings})

    async def _follow(self) -> None:
        while True:
            try:
                await self._follow_connection()
            except (OSError, EOFError, TimeoutError) as error:
                _LOG.warning("the supervisor does not answer", error=str(error), last_state_s=self.state_age_s())
            except (FrameDamaged, ValueError) as error:
                _LOG.error(
                    "the supervisor's state can't be read; after an upgrade, restart the node",
                    error=str(error),
                )
            except Exception:  # noqa: BLE001 - it is logged, and retried
                # Any error: a front that stopped following would use an old state forever.
                _LOG.exception("the supervisor's state could not be applied")
            await asyncio.sleep(_RETRY_S)

    async def _follow_connection(self) -> None:
        reader, writer = await asyncio.open_unix_connection(str(self._path))
        try:
            while True:
                async with asyncio.timeout(_STATE_TIMEOUT_S):
                    await write_message(writer, self._state_request())
                    answer = await read_message(reader, _MAX_STATE_BYTES)
                await self._apply(answer)
        finally:
            await close_connection(writer)

    async def _apply(self, answer: Message) -> None:
        if answer.kind != STATE:
            raise ValueError(f"received {answer.kind!r} instead of the state: {answer.fields.get('text', '')}")
        state = NodeState.from_fields(answer.fields)
        self._update_links({shard.shard for shard in state.shards})
        self._state, self._received_at = state, self._clock.monotonic()
        # A new front reloads, too, if there was a reload: it may have read the file before it.
        if state.settings != (self._settings if self._settings is not None else 0):
            try:
                await self._on_reload()
            except StrandlineError as error:
                _LOG.error("the front could not apply the settings, and keeps the previous ones", error=str(error))
        self._settings = state.settings

    def _update_links(self, shards: set[int]) -> None:
        before = self._links
        if before.keys() == shards:
            return
        # The mapping is replaced, not changed, because other threads may be reading it.
        self._links = {shard: before[shard] if shard in before else self._new_link(shard) for shard in sorted(shards)}
        for shard in before.keys() - shards:
            before[shard].close()
