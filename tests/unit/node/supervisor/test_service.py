"""A node's life in its event loop: signals, reloads, and what ends it."""

import asyncio
import os
import signal
from collections.abc import Callable

import pytest
import structlog

from strandline.clock import SystemClock, wait_until
from strandline.errors import Fatal
from strandline.node.settings import Problem, Settings, SettingsError
from strandline.node.supervisor import service as service_module
from strandline.node.supervisor.reloading import Reload, reloaded
from strandline.node.supervisor.service import NodeService
from strandline.node.supervisor.supervisor import Vitals
from strandline.node.systemd.notices import NodeNotices
from strandline.node.systemd.notify import NotifySocket

pytestmark = pytest.mark.unit


class Supervised:
    """Notes what is asked of it, in a list that it shares with the front."""

    def __init__(self, noted: list[str]) -> None:
        self.noted, self.settings, self.waits_for = noted, Settings(), ""
        self.has_ended = False
        self.failure: Exception | None = None
        self.start_failure: Exception | None = None
        self.killed = asyncio.Event()
        self.stops_when_killed = False

    def start(self) -> None:
        self.noted.append("supervisor starts")
        if self.start_failure is not None:
            raise self.start_failure

    def stop(self) -> None:
        self.noted.append("supervisor stops")
        # Not for ever: a test must be able to fail.
        if self.stops_when_killed:
            wait_until(self.killed.is_set, timeout=10, clock=SystemClock(), poll=0.005)

    def kill(self) -> None:
        self.noted.append("supervisor kills")
        self.killed.set()

    def reload(self, read: Settings) -> Reload:
        outcome = reloaded(self.settings, read)
        self.settings = outcome.settings
        return outcome

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def shards(self) -> tuple[()]:
        return ()

    def vitals(self) -> Vitals:
        return Vitals()


class Front:
    def __init__(self, noted: list[str]) -> None:
        self.noted, self.settings = noted, Settings()
        self.failure: Exception | None = None

    async def start(self) -> None:
        self.noted.append("front starts")
        if self.failure is not None:
            raise self.failure

    async def stop(self) -> None:
        self.noted.append("front stops")

    def reload(self, settings: Settings) -> None:
        self.settings = settings


class Node:
    def __init__(self) -> None:
        self.noted: list[str] = []
        self.supervisor, self.front = Supervised(self.noted), Front(self.noted)
        self.read: Callable[[], Settings] = Settings
        self.applied: list[Settings] = []

    def run(self, *acts: Callable[[], object]) -> None:
        """Serve, and do these one after the other: each when the one before has been seen to by the loop."""

        async def life() -> None:
            notices = NodeNotices(self.supervisor, NotifySocket(None), SystemClock())
            service = NodeService(
                self.supervisor, self.front, notices, read_settings=self.read, apply=self.applied.append
            )
            running = asyncio.create_task(service.run())
            for act in acts:
                while "supervisor starts" not in self.noted:
                    await asyncio.sleep(0.002)
                if (condition := act()) is not None:
                    while not condition():
                        await asyncio.sleep(0.002)
            await asyncio.wait_for(running, 20)

        asyncio.run(life())


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(service_module, "_TURN_S", 0.01)
    return Node()


def send(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_front_first_and_then_the_shards(node: Node, number: signal.Signals) -> None:
    node.run(send(number))
    assert node.noted == ["front starts", "supervisor starts", "front stops", "supervisor stops"]


def test_a_second_signal_ends_the_shards_at_once(node: Node) -> None:
    node.supervisor.stops_when_killed = True

    def first() -> Callable[[], bool]:
        os.kill(os.getpid(), signal.SIGTERM)
        return lambda: "supervisor stops" in node.noted

    node.run(first, send(signal.SIGTERM))
    assert node.noted[-1] == "supervisor kills"


def test_sighup_reads_the_settings_again_and_all_follow_what_is_in_force(node: Node) -> None:
    node.read = lambda: Settings(log={"level": "debug"}, query={"max_series": 7}, http={"connections": 9})

    def hang_up() -> Callable[[], bool]:
        os.kill(os.getpid(), signal.SIGHUP)
        return lambda: bool(node.applied)

    node.run(hang_up, send(signal.SIGTERM))
    assert node.front.settings.query.max_series == 7
    assert node.applied == [node.front.settings]
    assert node.front.settings.http.connections == 1000, "that one waits for a restart"


def test_a_broken_file_keeps_the_settings_and_says_so(node: Node) -> None:
    def broken() -> Settings:
        raise SettingsError([Problem("node.restarts", "x", "line 3", "is not a number", "A number")])

    node.read = broken
    with structlog.testing.capture_logs() as logs:

        def hang_up() -> Callable[[], bool]:
            os.kill(os.getpid(), signal.SIGHUP)
            return lambda: any("not taken over" in line["event"] for line in logs)

        node.run(hang_up, send(signal.SIGTERM))
    (told,) = [line for line in logs if "not taken over" in line["event"]]
    assert "node.restarts" in told["error"]
    assert node.applied == []


def test_an_address_that_can_t_be_had_starts_no_shard(node: Node) -> None:
    node.front.failure = Fatal("the address is in use")
    with pytest.raises(Fatal, match="address is in use"):
        node.run()
    assert "supervisor starts" not in node.noted


def test_settings_that_don_t_fit_the_topic_end_it(node: Node) -> None:
    node.supervisor.start_failure = Fatal("there is no shard 9")
    with pytest.raises(Fatal, match="no shard 9"):
        node.run()
    assert node.noted[-2:] == ["front stops", "supervisor stops"]


def test_the_end_of_the_supervisor_is_the_nodes(node: Node) -> None:
    def fail() -> None:
        node.supervisor.failure, node.supervisor.has_ended = Fatal("it broke"), True

    with pytest.raises(Fatal, match="it broke"):
        node.run(fail)
    assert node.noted[-2:] == ["front stops", "supervisor stops"]


def test_afterwards_signals_are_nobodys(node: Node) -> None:
    node.run(send(signal.SIGTERM))
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
