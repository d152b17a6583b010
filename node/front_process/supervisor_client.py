"""The front's end of the control socket: how the node stands, as its supervisor says, and requests to it."""

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
_MOST_STATE = 1 << 28
_NONE_YET = -1
# A new state comes twice a second. Without one for this long the connection is made anew.
_STATE_S = 10.0
_AGAIN_S = 0.5
# A reload may wait for Kafka and for the front itself.
_REQUEST_S = 120.0


class SupervisorUnreachable(Retryable):
    """The supervisor does not answer at its socket."""


class Link(Protocol):
    """The way to a shard."""

    def close(self) -> None:
        """Let go of connections."""
        ...


L = TypeVar("L", bound=Link)


class SupervisorClient(Generic[L]):
    """The supervisor, as the front sees it. Its coroutines belong to one event loop; the rest may be called by any
    thread.

    While the supervisor does not answer, what it last said holds: shards can be asked all the same, and a supervisor
    that is gone takes the front with it.
    """

    def __init__(
        self,
        path: Path,
        links: Callable[[int], L],
        clock: Clock,
        *,
        on_reload: Callable[[], Awaitable[None]],
    ) -> None:
        """`links` makes the way to a shard, by its number. `on_reload` is awaited when the node has taken over new
        settings, and may raise what is wrong with them.
        """
        self._path, self._links_of, self._clock, self._on_reload = path, links, clock, on_reload
        self._state, self._at = NodeState(version=_NONE_YET), clock.monotonic()
        self._links: Mapping[int, L] = {}
        self._settings: int | None = None
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Ask for the first state, and follow from then on. Raises `SupervisorUnreachable`."""
        try:
            async with asyncio.timeout(_STATE_S):
                await self._take(await self._asked(self._state_request()))
        except (OSError, EOFError, TimeoutError, FrameDamaged, ValueError) as error:
            raise SupervisorUnreachable(f"the supervisor does not answer at {self._path}: {error}") from error
        self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Follow no more."""
        if self._following is not None:
            self._following.cancel()
            with suppress(asyncio.CancelledError):
                await self._following
        for link in self._links.values():
            link.close()

    def state(self) -> NodeState:
        """The node, as the supervisor last said."""
        return self._state

    def state_age_s(self) -> float:
        """How long ago that was."""
        return self._clock.monotonic() - self._at

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
        """Why the shards are not known yet."""
        return self._state.waits_for

    def clients(self) -> Mapping[int, L]:
        """The ways to the shards that are served, by number. They stay the same while processes come and go."""
        return self._links

    async def restart_shard(self, shard: int) -> None:
        """A new process for a shard. Raises `NoSuchShard`, and `SupervisorUnreachable`."""
        await self._request(Message(RESTART, {"shard": shard}))

    async def reload(self) -> tuple[Change, ...]:
        """Have the node read its settings again: what has changed. Raises what is wrong with them, and
        `SupervisorUnreachable`. When it returns, this front has followed.
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
            async with asyncio.timeout(_REQUEST_S):
                answer = await self._asked(message)
        except (OSError, EOFError, TimeoutError, FrameDamaged) as error:
            raise SupervisorUnreachable(
                f"the supervisor does not answer: {error}", remedy="Try again; see the node's log"
            ) from error
        if answer.kind == ERROR:
            raise error_of(answer)
        return answer

    async def _asked(self, message: Message) -> Message:
        """The answer to one message, over a connection of its own."""
        reader, writer = await asyncio.open_unix_connection(str(self._path))
        try:
            await write_message(writer, message)
            return await read_message(reader, _MOST_STATE)
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
                    "the supervisor's state can't be read; after an upgrade the node has to be restarted",
                    error=str(error),
                )
            except Exception:  # noqa: BLE001 - it is logged, and tried again
                # Whatever it is: a front that no longer follows would answer by an old state for ever.
                _LOG.exception("the supervisor's state could not be taken over")
            await asyncio.sleep(_AGAIN_S)

    async def _follow_connection(self) -> None:
        reader, writer = await asyncio.open_unix_connection(str(self._path))
        try:
            while True:
                async with asyncio.timeout(_STATE_S):
                    await write_message(writer, self._state_request())
                    answer = await read_message(reader, _MOST_STATE)
                await self._take(answer)
        finally:
            await close_connection(writer)

    async def _take(self, answer: Message) -> None:
        if answer.kind != STATE:
            raise ValueError(f"{answer.kind!r} came instead of the state: {answer.fields.get('text', '')}")
        state = NodeState.from_fields(answer.fields)
        self._link({shard.shard for shard in state.shards})
        self._state, self._at = state, self._clock.monotonic()
        # A front that has just read the settings follows all the same once there was a reload: it may have read the
        # file before.
        if state.settings != (self._settings if self._settings is not None else 0):
            try:
                await self._on_reload()
            except StrandlineError as error:
                _LOG.error(
                    "the front does not take the settings over; those from before stay in force", error=str(error)
                )
        self._settings = state.settings

    def _link(self, shards: set[int]) -> None:
        before = self._links
        if before.keys() == shards:
            return
        # Replaced as a whole, since any thread may be looking at it.
        self._links = {shard: before[shard] if shard in before else self._links_of(shard) for shard in sorted(shards)}
        for shard in before.keys() - shards:
            before[shard].close()
