"""The front's end of the control socket, also with an unavailable supervisor and with invalid answers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.clock import SystemClock
from strandline.errors import Fatal
from strandline.node.front_process import supervisor_client as client_module
from strandline.node.front_process.supervisor_client import SupervisorClient, SupervisorUnreachable
from strandline.node.query.frames import Message
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from strandline.node.supervisor.control_messages import RELOADED, STATE, close_connection, read_message, write_message
from strandline.node.supervisor.control_server import ControlServer
from strandline.node.supervisor.node_state import NodeState
from strandline.node.supervisor.reloading import Reload

pytestmark = pytest.mark.unit


class Link:
    def __init__(self, shard: int) -> None:
        self.shard, self.closed = shard, False

    def close(self) -> None:
        self.closed = True


class Node:
    """A node with a configurable state."""

    def __init__(self) -> None:
        self.shards: Sequence[int] = (0, 1)
        self.settings = 0

    def state(self, version: int) -> NodeState:
        statuses = tuple(ShardProcessStatus(shard, ProcessState.STARTING) for shard in self.shards)
        return NodeState(version, self.settings, statuses, started_at=5)

    def restart_shard(self, shard: int) -> None:
        raise AssertionError(shard)

    async def reload(self) -> Reload:
        raise AssertionError


class World:
    """A control socket, and a client of it."""

    def __init__(self, folder: Path) -> None:
        self.path, self.node = folder / "node.sock", Node()
        self.follow: Callable[[], Awaitable[None]] = self._follow
        self.followed = 0
        self.client = SupervisorClient(self.path, Link, SystemClock(), on_reload=self._on_reload)

    async def _follow(self) -> None:
        self.followed += 1

    async def _on_reload(self) -> None:
        await self.follow()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.002)

    async def served(self) -> ControlServer:
        server = ControlServer(self.path, self.node)
        await server.start()
        return server


@pytest.fixture
def make_world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[[], World]:
    monkeypatch.setattr(client_module, "_RETRY_S", 0.001)
    return lambda: World(tmp_path_factory.mktemp("c"))


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(client_module, "_RETRY_S", 0.01)
    return World(tmp_path_factory.mktemp("c"))


def test_after_the_start_it_has_a_state_and_a_link_to_each_shard(world: World) -> None:
    async def run() -> None:
        server = await world.served()
        await world.client.start()
        assert [shard.shard for shard in world.client.shards()] == [0, 1]
        assert sorted(world.client.clients()) == [0, 1]
        assert world.client.started_ms() == 5
        assert world.client.state_age_s() < 10
        await world.client.close()
        await server.close()

    asyncio.run(run())


def test_without_a_supervisor_it_does_not_start(world: World) -> None:
    with pytest.raises(SupervisorUnreachable):
        asyncio.run(world.client.start())


def test_links_follow_added_and_removed_shards(world: World) -> None:
    async def run() -> None:
        server = await world.served()
        await world.client.start()
        before = world.client.clients()
        world.node.shards = (1, 2)
        server.publish()
        await world.wait_until(lambda: sorted(world.client.clients()) == [1, 2])
        assert world.client.clients()[1] is before[1]
        assert (before[0].closed, before[1].closed) == (True, False)
        after = world.client.clients()
        await world.client.close()
        assert all(link.closed for link in after.values())
        await server.close()

    asyncio.run(run())


def test_the_last_state_is_used_until_the_supervisor_answers_again(world: World) -> None:
    async def run() -> None:
        server = await world.served()
        await world.client.start()
        await server.close()
        with structlog.testing.capture_logs() as logs:
            await world.wait_until(lambda: any("does not answer" in line["event"] for line in logs))
        assert [shard.shard for shard in world.client.shards()] == [0, 1]
        with pytest.raises(SupervisorUnreachable):
            await world.client.restart_shard(0)
        world.node.shards = (4,)
        server = await world.served()
        await world.wait_until(lambda: sorted(world.client.clients()) == [4])
        await world.client.close()
        await server.close()

    asyncio.run(run())


def test_reloaded_settings_are_applied_once(world: World) -> None:
    async def run() -> None:
        server = await world.served()
        await world.client.start()
        assert world.followed == 0, "there was no reload"
        for reload in (1, 2):
            world.node.settings = reload
            server.publish()
            assert await server.front_has_settings(reload, lambda: True, 20.0)
            assert world.followed == reload
        server.publish()
        await world.wait_until(lambda: world.client.state().version >= 3)
        assert world.followed == 2
        await world.client.close()
        await server.close()

    asyncio.run(run())


def test_a_front_that_starts_after_a_reload_applies_it_again(world: World) -> None:
    async def run() -> None:
        world.node.settings = 3
        server = await world.served()
        await world.client.start()
        assert world.followed == 1
        await world.client.close()
        await server.close()

    asyncio.run(run())


def test_settings_that_the_front_can_not_apply_are_logged_and_do_not_block_the_reload(world: World) -> None:
    async def fail() -> None:
        raise Fatal("the file is broken by now")

    async def run() -> None:
        server = await world.served()
        await world.client.start()
        world.follow = fail
        world.node.settings = 1
        with structlog.testing.capture_logs() as logs:
            server.publish()
            assert await server.front_has_settings(1, lambda: True, 20.0)
        assert any("the file is broken" in line.get("error", "") for line in logs)
        await world.client.close()
        await server.close()

    asyncio.run(run())


def test_an_unexpected_error_does_not_end_the_client(world: World) -> None:
    async def faulty() -> None:
        world.follow = world._follow
        raise ZeroDivisionError

    async def run() -> None:
        server = await world.served()
        await world.client.start()
        world.follow = faulty
        world.node.settings = 1
        with structlog.testing.capture_logs() as logs:
            server.publish()
            await world.wait_until(lambda: world.followed == 1)
        assert any("could not be applied" in line["event"] for line in logs)
        await world.client.close()
        await server.close()

    asyncio.run(run())


@pytest.mark.parametrize("is_there", [True, False])
def test_a_front_that_does_not_follow_is_waited_for_until_a_timeout(world: World, is_there: bool) -> None:
    async def run() -> None:
        server = await world.served()
        assert not await server.front_has_settings(1, lambda: is_there, 0.05 if is_there else 600.0)
        await server.close()

    asyncio.run(run())


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("shards"), st.sets(st.integers(0, 3), max_size=4)),
        st.tuples(st.just("reload"), st.none()),
        st.tuples(st.just("publish"), st.none()),
        st.tuples(st.just("nonsense"), st.sampled_from([b"", b"x" * 40, b"SLQ1" + b"\xff" * 30])),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(EVENTS)
def test_the_front_gets_the_supervisors_state_after_any_fault_of_the_socket(
    make_world: Callable[[], World], events: list[tuple[str, Any]]
) -> None:
    world = make_world()

    async def run() -> None:
        server = await world.served()
        await world.client.start()
        for what, value in events:
            match what:
                case "shards":
                    world.node.shards = sorted(value)
                case "reload":
                    world.node.settings += 1
                case "nonsense":
                    _, writer = await asyncio.open_unix_connection(str(world.path))
                    writer.write(value)
                    await close_connection(writer)
            server.publish()
        expected = world.node.state(0)
        await world.wait_until(
            lambda: world.client.shards() == expected.shards and world.client.state().settings == expected.settings
        )
        assert sorted(world.client.clients()) == list(world.node.shards)
        assert not any(link.closed for link in world.client.clients().values())
        # Simultaneous reloads may be followed together; the last one is never missed.
        await world.wait_until(lambda: (world.followed > 0) == (expected.settings > 0))
        await world.client.close()
        await server.close()

    asyncio.run(run())


class FaultySupervisor:
    """A supervisor that answers each message with the next of these answers: raw bytes, or a message."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await read_message(reader, 1 << 20)
            answer = self.answers.pop(0) if self.answers else b""
            if isinstance(answer, Message):
                await write_message(writer, answer)
            else:
                writer.write(answer)
        except EOFError:
            pass
        finally:
            writer.close()


INVALID_ANSWERS = (
    b"",
    b"x" * 100,
    b"SLQ1" + b"\x00" * 3,
    Message("something", {}),
    Message(STATE, {}),
    Message(STATE, {"shards": 1}),
)


@pytest.mark.parametrize("answer", INVALID_ANSWERS)
def test_an_invalid_first_state_is_a_retryable_error(world: World, answer: Any) -> None:
    async def run() -> None:
        server = await asyncio.start_unix_server(FaultySupervisor(answer).serve, str(world.path))
        with pytest.raises(SupervisorUnreachable):
            await world.client.start()
        server.close()

    asyncio.run(run())


@pytest.mark.parametrize("answer", INVALID_ANSWERS)
def test_an_invalid_later_state_changes_nothing(world: World, answer: Any) -> None:
    valid = [Message(STATE, NodeState(version, shards=_shards(version)).to_fields()) for version in (1, 2)]

    async def run() -> None:
        server = await asyncio.start_unix_server(FaultySupervisor(valid[0], answer, valid[1]).serve, str(world.path))
        await world.client.start()
        assert sorted(world.client.clients()) == [1]
        await world.wait_until(lambda: sorted(world.client.clients()) == [2])
        await world.client.close()
        server.close()

    asyncio.run(run())


def _shards(number: int) -> tuple[ShardProcessStatus, ...]:
    return (ShardProcessStatus(number, ProcessState.STARTING),)


def test_an_invalid_answer_to_a_reload_is_an_error(world: World) -> None:
    async def run() -> None:
        server = await asyncio.start_unix_server(FaultySupervisor(Message(RELOADED, {})).serve, str(world.path))
        with pytest.raises(SupervisorUnreachable, match="can't be read"):
            await world.client.reload()
        server.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "message", [Message("dance", {}), Message(STATE, {}), Message("restart", {"shard": "x"}), Message("restart", {})]
)
def test_the_supervisor_refuses_unknown_messages_and_keeps_serving(world: World, message: Message) -> None:
    async def run() -> None:
        server = await world.served()
        reader, writer = await asyncio.open_unix_connection(str(world.path))
        for _ in range(2):
            await write_message(writer, message)
            assert (await read_message(reader, 1 << 20)).kind == "error"
        writer.close()
        await server.close()

    asyncio.run(run())


def test_the_supervisor_closes_a_connection_that_sends_no_frames(world: World) -> None:
    async def run() -> None:
        server = await world.served()
        reader, writer = await asyncio.open_unix_connection(str(world.path))
        writer.write(b"GET / HTTP/1.1\r\n\r\n" * 10)
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()
        await server.close()

    asyncio.run(run())
