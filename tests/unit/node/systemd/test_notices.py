"""The messages of a node and a gateway to systemd, over a real socket."""

import asyncio
import socket
from collections.abc import Iterator

import pytest
import structlog

from strandline.clock import ManualClock
from strandline.node.gateway.systemd_notices import GatewayNotices
from strandline.node.settings.http_sections import NodeSettings
from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Phase, Status
from strandline.node.status.processes import FRONT, ProcessState, ProcessStatus, ShardProcessStatus
from strandline.node.supervisor.supervisor import Heartbeats
from strandline.node.supervisor.systemd_notices import NodeNotices
from strandline.node.systemd.notify import NotifySocket

pytestmark = pytest.mark.unit


class Node:
    """A node with one shard, in a phase."""

    def __init__(self) -> None:
        self.phase, self.iterations, self.waits_for = Phase.REPLAYING, 0, ""

    def shards(self) -> tuple[ShardProcessStatus, ...]:
        report = ShardReport(Status(phase=self.phase), ProcessFigures(7, 0.0, 0, 0))
        return (ShardProcessStatus(0, ProcessState.RUNNING, pid=7, report=report),)

    def processes(self) -> tuple[ProcessStatus, ...]:
        return (ProcessStatus(FRONT, ProcessState.RUNNING),)

    def heartbeats(self) -> Heartbeats:
        self.iterations += 1
        return Heartbeats(self.iterations)


@pytest.fixture
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path_factory.mktemp("n") / "notify"))
        listening.setblocking(False)
        yield listening


def received(manager: socket.socket) -> list[list[str]]:
    messages = []
    while True:
        try:
            messages.append(manager.recv(4096).decode().splitlines())
        except BlockingIOError:
            return messages


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def notices(node: Node, manager: socket.socket, clock: ManualClock) -> Iterator[NodeNotices]:
    created = NodeNotices(node, NotifySocket(manager.getsockname()), clock, watchdog_s=60.0)
    yield created
    created.close()


def test_each_watchdog_message_is_counted(notices: NodeNotices, clock: ManualClock) -> None:
    for _ in range(60):
        notices.update()
        clock.sleep(1)
    assert notices.feeds == 2


def test_a_node_notifies_systemd_from_start_to_stop(
    notices: NodeNotices, node: Node, manager: socket.socket, clock: ManualClock
) -> None:
    notices.update()
    assert received(manager) == [
        ["EXTEND_TIMEOUT_USEC=180000000", "WATCHDOG=1", "STATUS=0 of 1 shard active; shard 0 replaying"]
    ]
    clock.sleep(1)
    notices.update()
    assert received(manager) == [], "nothing has changed"
    node.phase = Phase.ACTIVE
    notices.update()
    assert received(manager) == [["READY=1", "STATUS=1 of 1 shard active"]]
    clock.sleep(29)
    notices.update()
    assert received(manager) == [["WATCHDOG=1"]]
    notices.reloading()
    notices.reloaded()
    assert received(manager) == [["RELOADING=1", "MONOTONIC_USEC=30000000"], ["READY=1"]]
    notices.stopping(30.0)
    notices.update()
    assert received(manager) == [["STOPPING=1", "STATUS=stopping", "EXTEND_TIMEOUT_USEC=45000000"]]


def test_a_reload_before_it_is_ready_does_not_make_it_so(notices: NodeNotices, manager: socket.socket) -> None:
    notices.update()
    received(manager)
    notices.reloading()
    notices.reloaded()
    assert received(manager) == []


@pytest.mark.parametrize(("hang_after", "warned"), [("30s", False), ("31s", True)])
def test_a_watchdog_timeout_below_the_supervisors_interval_is_reported(
    notices: NodeNotices, hang_after: str, warned: bool
) -> None:
    with structlog.testing.capture_logs() as logs:
        notices.check(NodeSettings(hang_after=hang_after))
    assert bool(logs) is warned


def test_without_systemd_no_notice_is_sent(node: Node, clock: ManualClock) -> None:
    notices = NodeNotices.of(node, {}, clock)
    notices.update()
    notices.reloading()
    notices.reloaded()
    notices.stopping(1.0)
    notices.close()
    assert node.iterations == 0


def test_a_gateway_is_ready_when_it_listens_and_feeds_the_watchdog_while_its_loop_iterates(
    manager: socket.socket,
) -> None:
    async def run() -> list[list[str]]:
        notices = GatewayNotices(NotifySocket(manager.getsockname()), watchdog_s=0.02)
        notices.ready("taking remote writes")
        messages = received(manager)
        while len(messages) < 4:
            await asyncio.sleep(0.005)
            messages += received(manager)
        notices.stopping(20.0)
        messages += received(manager)
        await asyncio.sleep(0.05)
        assert received(manager) == [], "a stopping gateway does not feed the watchdog"
        return messages

    first, *watchdog_messages, last = asyncio.run(run())
    assert first == ["READY=1", "STATUS=taking remote writes"]
    assert {tuple(message) for message in watchdog_messages} == {("WATCHDOG=1",)}
    assert last == ["STOPPING=1", "STATUS=stopping", "EXTEND_TIMEOUT_USEC=35000000"]
