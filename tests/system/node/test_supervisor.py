"""A node's supervisor with real shards, a real Kafka and a real Cassandra."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from strandline.clock import SystemClock, wait_until
from strandline.errors import ExitCode
from strandline.node.settings import load_with_origins
from strandline.node.stack import Stack
from strandline.node.stack.process import ProcessIdentity
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from strandline.node.supervisor.assembling import assembled_supervisor
from strandline.node.supervisor.socket_folder import socket_folder
from strandline.node.supervisor.supervisor import Supervisor
from support.deployment import Deployment

pytestmark = pytest.mark.system

CLOCK = SystemClock()


@pytest.fixture
def partitions() -> int:
    return 2


@pytest.fixture
def deployment(stack: Stack, tmp_path: Path, partitions: int) -> Iterator[Deployment]:
    deployed = Deployment(
        stack,
        tmp_path,
        partitions=partitions,
        replay={"mode": "direct"},
        node={"hang_after": "5s", "stop_timeout": "20s"},
        kafka={"request_timeout": "4s"},
        http={"node_address": "127.0.0.1:0"},
    )
    with closing(deployed.store):
        yield deployed


@contextmanager
def supervised(settings: Path, *, take: bool = False) -> Iterator[Supervisor]:
    loaded = load_with_origins(settings, {})
    with socket_folder({}) as folder, assembled_supervisor(loaded, os.environ, CLOCK, folder, take=take) as supervisor:
        supervisor.start()
        yield supervisor


def until(what: Callable[[], bool], supervisor: Supervisor, timeout: float = 120) -> None:
    assert wait_until(what, timeout=timeout, clock=CLOCK), supervisor.shards()


def all_active(supervisor: Supervisor, shards: int = 2) -> Callable[[], bool]:
    return lambda: len(supervisor.shards()) == shards and all(shard.is_active for shard in supervisor.shards())


def status(supervisor: Supervisor, shard: int) -> ShardProcessStatus:
    until(lambda: len(supervisor.shards()) > shard, supervisor)
    return supervisor.shards()[shard]


def pid_of(supervisor: Supervisor, shard: int) -> int:
    pid = status(supervisor, shard).pid
    assert pid is not None
    return pid


def test_a_killed_or_hung_shard_restarts_and_the_other_continues(deployment: Deployment) -> None:
    deployment.produce_hours(2, records=5, series=20, partition=0)
    with supervised(deployment.settings) as supervisor:
        until(all_active(supervisor), supervisor)
        killed, other = pid_of(supervisor, 0), pid_of(supervisor, 1)
        os.kill(killed, signal.SIGKILL)
        until(lambda: status(supervisor, 0).exit_code == -signal.SIGKILL, supervisor)
        until(all_active(supervisor), supervisor)
        hung = pid_of(supervisor, 0)
        assert hung != killed
        os.kill(hung, signal.SIGSTOP)
        until(lambda: status(supervisor, 0).restarts == 2, supervisor)
        until(all_active(supervisor), supervisor)
        assert pid_of(supervisor, 1) == other
        assert status(supervisor, 1).restarts == 0
        processes = [ProcessIdentity.of(pid_of(supervisor, shard)) for shard in (0, 1)]
        supervisor.stop()
        assert [(shard.state, shard.exit_code) for shard in supervisor.shards()] == [
            (ProcessState.STOPPED, ExitCode.OK)
        ] * 2
        assert not any(process is not None and process.alive() for process in processes)
    for shard in (0, 1):
        state = deployment.store.state(deployment.shard(shard))
        assert state is not None
        assert state.seen_at is None, "it gave up its ownership"


def test_a_shard_that_needs_an_operator_is_down_with_the_remedy_and_the_other_continues(deployment: Deployment) -> None:
    folder = deployment.folder / "data" / "shards" / deployment.name / "0"
    folder.parent.mkdir(parents=True)
    folder.write_text("in the way")
    text = deployment.settings.read_text()
    deployment.settings.write_text(text.replace("[node]", "[node]\nrestarts = 0"))
    with supervised(deployment.settings) as supervisor:
        until(lambda: status(supervisor, 0).state is ProcessState.DOWN, supervisor)
        until(lambda: status(supervisor, 1).is_active, supervisor)
        assert "node.restarts is 0" in status(supervisor, 0).reason
        folder.unlink()
        supervisor.restart_shard(0)
        until(all_active(supervisor), supervisor)


@pytest.mark.parametrize("partitions", [1])
def test_48_a_second_node_takes_shards_of_a_healthy_node_only_by_force(deployment: Deployment) -> None:
    elsewhere = deployment.folder / "elsewhere.toml"
    text = deployment.settings.read_text()
    elsewhere.write_text(text.replace(str(deployment.folder / "data"), str(deployment.folder / "other")))
    with supervised(deployment.settings) as first:
        until(all_active(first, 1), first)
        with supervised(elsewhere) as second:
            until(lambda: status(second, 0).exit_code == ExitCode.FENCED, second)
            assert "has a live owner: process" in status(second, 0).reason
            assert all_active(first, 1)()
        with supervised(elsewhere, take=True) as second:
            until(all_active(second, 1), second)
            until(lambda: status(first, 0).exit_code == ExitCode.FENCED, first)
            assert status(first, 0).state is ProcessState.WAITING
            before = status(first, 0).restarts
            first.restart_shard(0)
            until(lambda: status(first, 0).restarts == before + 1, first)
            until(lambda: status(first, 0).state is ProcessState.WAITING, first)
            assert status(first, 0).exit_code == ExitCode.FENCED
            assert "has a live owner: process" in status(first, 0).reason
            assert status(second, 0).is_active
        first.restart_shard(0)
        until(lambda: status(first, 0).is_active, first)


class Node:
    """`strandline node` in a process, and systemd's end of its notification socket."""

    def __init__(self, settings: Path, manager: socket.socket) -> None:
        self.manager, self.messages = manager, list[str]()
        script = Path(sys.executable).with_name("strandline")
        self.process = subprocess.Popen(
            [sys.executable, str(script), "node", "--config", str(settings)],
            env={**os.environ, "NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "30000000"},
        )

    def wait_for(self, line: str, timeout: float = 120) -> None:
        def is_logged() -> bool:
            try:
                while True:
                    self.messages += self.manager.recv(1 << 16).decode().splitlines()
            except BlockingIOError:
                return line in self.messages or self.process.poll() is not None

        assert wait_until(is_logged, timeout=timeout, clock=CLOCK), self.messages
        assert line in self.messages, (self.process.poll(), self.messages)
        self.messages = self.messages[self.messages.index(line) + 1 :]

    def family(self) -> list[ProcessIdentity]:
        """The process and all its descendants."""
        found, pids = [], [self.process.pid]
        while pids:
            pid = pids.pop()
            identity = ProcessIdentity.of(pid)
            if identity is not None:
                found.append(identity)
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                pids += map(int, children.read_text().split())
        return found


@pytest.fixture
def node(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path_factory.mktemp("n") / "notify"))
        manager.setblocking(False)
        started = Node(deployment.settings, manager)
        try:
            yield started
        finally:
            started.process.kill()
            started.process.wait()


def test_all_processes_of_a_killed_node_end(node: Node) -> None:
    node.wait_for("READY=1")
    family = node.family()
    assert len(family) == 4, "the supervisor, its front and two shards"
    node.process.kill()
    node.process.wait()
    assert wait_until(lambda: not any(process.alive() for process in family), timeout=30, clock=CLOCK)


def test_systemd_is_notified_of_start_reload_and_stop(node: Node, deployment: Deployment) -> None:
    node.wait_for("READY=1")
    node.wait_for("STATUS=2 of 2 shards active")
    family = node.family()
    deployment.settings.write_text(deployment.settings.read_text().replace("[node]", '[node]\nshards = "1"'))
    node.process.send_signal(signal.SIGHUP)
    node.wait_for("RELOADING=1")
    node.wait_for("READY=1")
    node.wait_for("STATUS=1 of 1 shard active")
    assert wait_until(lambda: len(node.family()) == 3, timeout=30, clock=CLOCK)
    node.wait_for("WATCHDOG=1")
    deployment.settings.write_text("no toml at all")
    node.process.send_signal(signal.SIGHUP)
    node.wait_for("RELOADING=1")
    node.wait_for("READY=1")
    node.process.terminate()
    node.wait_for("STOPPING=1")
    assert node.process.wait(30) == ExitCode.OK
    assert not any(process.alive() for process in family)
