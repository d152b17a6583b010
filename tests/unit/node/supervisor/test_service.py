"""A node in its event loop: signals, reloads, its control socket, and its end."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog

from strandline.clock import SystemClock, wait_until
from strandline.errors import Fatal, Retryable
from strandline.node.front_process.supervisor_client import SupervisorClient
from strandline.node.settings import Problem, Settings, SettingsError
from strandline.node.status.processes import FRONT, WORKER, ProcessState, ProcessStatus, ShardProcessStatus
from strandline.node.supervisor import service as service_module
from strandline.node.supervisor.control_messages import RequestFailed, RequestRefused
from strandline.node.supervisor.node_state import NodeState
from strandline.node.supervisor.reloading import Change, Reload, TakesEffect, reloaded
from strandline.node.supervisor.service import NodeService
from strandline.node.supervisor.supervisor import Heartbeats, NoSuchShard
from strandline.node.supervisor.systemd_notices import NodeNotices
from strandline.node.systemd.notify import NotifySocket
from support.full_figures import full_report

pytestmark = pytest.mark.unit


class RecordingSupervisor:
    """Records its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.settings, self.waits_for = Settings(), ""
        self.on_publish: Callable[[], None] = lambda: None
        self.has_ended = False
        self.failure: Exception | None = None
        self.killed = asyncio.Event()
        self.stops_when_killed = False
        self.front = ProcessState.RUNNING

    def start(self) -> None:
        self.calls.append("starts")

    def stop(self) -> None:
        self.calls.append("stops")
        # With a timeout, so that the test fails instead of hanging.
        if self.stops_when_killed:
            wait_until(self.killed.is_set, timeout=10, clock=SystemClock(), poll=0.005)

    def kill(self) -> None:
        self.calls.append("kills")
        self.killed.set()

    def wake(self) -> None:
        self.calls.append("wakes")

    def reload(self, read: Settings) -> Reload:
        outcome = reloaded(self.settings, read)
        self.settings = outcome.settings
        return outcome

    def restart_shard(self, shard: int) -> None:
        if shard > 1:
            raise NoSuchShard(f"this node does not serve shard {shard}", remedy="It serves 0, 1")
        self.calls.append(f"restarts {shard}")

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def partitions(self) -> int | None:
        return 2

    def shards(self) -> tuple[ShardProcessStatus, ...]:
        return (
            ShardProcessStatus(0, ProcessState.RUNNING, 4, report=full_report()),
            ShardProcessStatus(1, ProcessState.DOWN, reason="its disk is full"),
        )

    def processes(self) -> tuple[ProcessStatus, ...]:
        return (ProcessStatus(FRONT, self.front, pid=7), ProcessStatus(WORKER, ProcessState.STOPPED))

    def heartbeats(self) -> Heartbeats:
        return Heartbeats()


class Link:
    closed = False

    def close(self) -> None:
        self.closed = True


Action = Callable[[], object]


class Node:
    """A service on a real control socket, and the front's side of it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "node.sock"
        self.supervisor = RecordingSupervisor()
        self.read: Callable[[], Settings] = Settings
        self.applied: list[Settings] = []
        self.followed = 0
        self.client = SupervisorClient(self.path, lambda _: Link(), SystemClock(), on_reload=self.follow)

    @property
    def calls(self) -> list[str]:
        return self.supervisor.calls

    async def follow(self) -> None:
        self.followed += 1

    def _read(self) -> Settings:
        return self.read()

    def run(self, *actions: Action, front: bool = False) -> None:
        """Serve, and run these actions in order, each when the condition of the previous one holds. With `front`, a
        client is connected from the beginning.
        """

        async def serve() -> None:
            notices = NodeNotices(self.supervisor, NotifySocket(None), SystemClock())
            service = NodeService(
                self.supervisor,
                notices,
                self.path,
                SystemClock(),
                read_settings=self._read,
                apply=self.applied.append,
                on_stop=lambda: self.calls.append("closes its listener"),
            )
            running = asyncio.create_task(service.run())
            while "starts" not in self.calls:
                await asyncio.sleep(0.002)
            if front:
                await self.client.start()
            for action in actions:
                outcome = action()
                if asyncio.iscoroutine(outcome):
                    await outcome
                elif callable(outcome):
                    while not outcome():
                        await asyncio.sleep(0.002)
            await asyncio.wait_for(running, 20)
            if front:
                await self.client.close()

        asyncio.run(serve())


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Node:
    monkeypatch.setattr(service_module, "_LOOP_INTERVAL_S", 0.01)
    return Node(tmp_path_factory.mktemp("n"))


def send(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_closes_the_listener_and_stops_the_processes(node: Node, number: signal.Signals) -> None:
    node.run(send(number))
    assert node.calls == ["starts", "closes its listener", "stops"]


def test_a_second_signal_kills_all_processes_at_once(node: Node) -> None:
    node.supervisor.stops_when_killed = True

    def first() -> Callable[[], bool]:
        os.kill(os.getpid(), signal.SIGTERM)
        return lambda: "stops" in node.calls

    node.run(first, send(signal.SIGTERM))
    assert node.calls[-1] == "kills"


def test_the_end_of_a_child_wakes_the_supervisor(node: Node) -> None:
    def send_sigchld() -> Callable[[], bool]:
        os.kill(os.getpid(), signal.SIGCHLD)
        return lambda: "wakes" in node.calls

    node.run(send_sigchld, send(signal.SIGTERM))


def test_sighup_reads_the_settings_again_and_all_processes_follow_those_in_force(node: Node) -> None:
    node.read = lambda: Settings(log={"level": "debug"}, query={"max_series": 7}, http={"connections": 9})

    def send_sighup() -> Callable[[], bool]:
        os.kill(os.getpid(), signal.SIGHUP)
        return lambda: bool(node.applied) and node.followed == 1

    node.run(send_sighup, send(signal.SIGTERM), front=True)
    (applied,) = node.applied
    assert applied.query.max_series == 7
    assert applied.http.connections == 1000, "this setting needs a restart"


def test_a_reload_over_http_is_answered_after_the_front_has_followed_it(node: Node) -> None:
    node.read = lambda: Settings(query={"max_series": 7}, shard={"poll_records": 9})
    changes: list[Change] = []

    async def reload() -> None:
        changes.extend(await node.client.reload())
        assert node.followed == 1

    node.run(reload, send(signal.SIGTERM), front=True)
    assert changes == [
        Change("shard.poll_records", TakesEffect.WITH_SHARD),
        Change("query.max_series", TakesEffect.AT_ONCE),
    ]


def test_a_front_that_is_not_running_is_not_waited_for(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "_FRONT_RELOAD_TIMEOUT_S", 600.0)
    node.supervisor.front = ProcessState.WAITING

    def send_sighup() -> Callable[[], bool]:
        os.kill(os.getpid(), signal.SIGHUP)
        return lambda: bool(node.applied)

    node.run(send_sighup, send(signal.SIGTERM))


def test_invalid_settings_are_reported_to_the_requesting_front_and_change_nothing(node: Node) -> None:
    def fail() -> Settings:
        raise SettingsError([Problem("node.restarts", "x", "line 3", "is not a number", "A number")])

    node.read = fail

    async def reload() -> None:
        with pytest.raises(RequestRefused, match=r"node\.restarts"):
            await node.client.reload()

    node.run(reload, send(signal.SIGTERM), front=True)
    assert (node.applied, node.followed) == ([], 0)


def test_a_retryable_error_is_reported_as_retryable(node: Node) -> None:
    def fail() -> Settings:
        raise Retryable("the file is locked")

    node.read = fail

    async def reload() -> None:
        with pytest.raises(RequestFailed, match="the file is locked"):
            await node.client.reload()

    node.run(reload, send(signal.SIGTERM), front=True)


def test_a_restart_of_a_shard_reaches_the_supervisor(node: Node) -> None:
    async def restart() -> None:
        await node.client.restart_shard(1)
        with pytest.raises(NoSuchShard, match=r"does not serve shard 7\. It serves 0, 1"):
            await node.client.restart_shard(7)

    node.run(restart, send(signal.SIGTERM), front=True)
    assert "restarts 1" in node.calls


def test_the_front_gets_the_supervisors_state(node: Node) -> None:
    states: list[NodeState] = []
    node.run(lambda: states.append(node.client.state()), send(signal.SIGTERM), front=True)
    (state,) = states
    assert state.shards == node.supervisor.shards()
    assert state.processes == node.supervisor.processes()
    assert state.supervisor is not None
    assert state.supervisor.pid == os.getpid()
    assert state.started_at > 0


def test_a_broken_file_keeps_the_settings_and_is_logged(node: Node) -> None:
    def fail() -> Settings:
        raise SettingsError([Problem("node.restarts", "x", "line 3", "is not a number", "A number")])

    node.read = fail
    with structlog.testing.capture_logs() as logs:

        def send_sighup() -> Callable[[], bool]:
            os.kill(os.getpid(), signal.SIGHUP)
            return lambda: any("reload failed" in line["event"] for line in logs)

        node.run(send_sighup, send(signal.SIGTERM))
    (logged,) = [line for line in logs if "reload failed" in line["event"]]
    assert "node.restarts" in logged["error"]
    assert node.applied == []


def test_a_failure_of_the_supervisor_ends_the_node(node: Node) -> None:
    def fail() -> None:
        node.supervisor.failure, node.supervisor.has_ended = Fatal("it broke"), True

    with pytest.raises(Fatal, match="it broke"):
        node.run(fail)
    assert node.calls[-1] == "stops"


def test_signal_handlers_are_removed_afterwards(node: Node) -> None:
    node.run(send(signal.SIGTERM))
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL
