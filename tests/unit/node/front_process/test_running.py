"""One run of the front's process: its listener, its reports, and its reloads."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.errors import ExitCode, Fatal
from strandline.node.front_process.running import (
    FrontRun,
    NoListener,
    TokensDoNotFit,
    inherited_listener,
    settings_for,
)
from strandline.node.http.listening import bound_socket
from strandline.node.settings import Settings, load_settings
from strandline.node.supervisor.child_report import parse_process_report
from strandline.node.supervisor.liveness import Stage
from strandline.node.supervisor.reloading import Change, TakesEffect
from strandline.node.supervisor.report_client import NoReport, ReportClient

pytestmark = pytest.mark.unit

CLOCK = SystemClock()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with bound_socket("127.0.0.1:0") as bound:
        yield bound


def port(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


class TestListener:
    def test_the_listener_is_the_one_that_was_passed_on(self, listener: socket.socket) -> None:
        with inherited_listener(os.dup(listener.fileno())) as inherited:
            assert inherited.getsockname() == listener.getsockname()
            assert not inherited.getblocking()

    def test_a_descriptor_that_is_no_listening_socket_is_refused(self, tmp_path: Path) -> None:
        with (tmp_path / "file").open("wb") as file, pytest.raises(NoListener):
            inherited_listener(file.fileno())
        with pytest.raises(NoListener):
            inherited_listener(987_654)
        with socket.socket() as unbound, pytest.raises(NoListener) as caught:
            inherited_listener(os.dup(unbound.fileno()))
        assert caught.value.exit_code == ExitCode.USAGE

    @pytest.mark.parametrize("written", ["127.0.0.1:0", "localhost:0"])
    def test_an_equivalent_address_stays_as_it_is_written(self, listener: socket.socket, written: str) -> None:
        settings = Settings(http={"node_address": written})
        assert settings_for(listener, settings) is settings

    def test_another_address_in_the_file_is_ignored(self, listener: socket.socket) -> None:
        inherited = settings_for(listener, Settings(http={"node_address": "127.0.0.1:9460"}))
        assert inherited.http.node_address == f"127.0.0.1:{port(listener)}"

    def test_tokens_that_would_leave_the_real_address_open_are_refused(self) -> None:
        with bound_socket("0.0.0.0:0") as everywhere, pytest.raises(TokensDoNotFit, match="read_token_file") as caught:
            settings_for(everywhere, Settings(http={"node_address": "127.0.0.1:9460"}))
        assert caught.value.exit_code == ExitCode.USAGE


class Front:
    def __init__(self, calls: list[str]) -> None:
        self.calls, self.settings = calls, Settings()
        self.has_kernels = True
        self.failure: Exception | None = None

    async def start(self) -> None:
        self.calls.append("front starts")
        if self.failure is not None:
            raise self.failure

    async def stop(self) -> None:
        self.calls.append("front stops")

    def reload(self, settings: Settings) -> None:
        if self.failure is not None:
            raise self.failure
        self.settings = settings


class Supervisor:
    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    async def start(self) -> None:
        self.calls.append("follows")

    async def close(self) -> None:
        self.calls.append("follows no more")

    async def reload(self) -> tuple[Change, ...]:
        return (Change("query.timeout", TakesEffect.AT_ONCE),)


class World:
    def __init__(self, folder: Path) -> None:
        self.calls: list[str] = []
        self.front, self.supervisor = Front(self.calls), Supervisor(self.calls)
        self.path = folder / "front.sock"
        self.read: Callable[[], Settings] = Settings
        self.applied: list[Settings] = []

    def _read(self) -> Settings:
        return self.read()

    def front_run(self) -> FrontRun:
        return FrontRun(
            self.front,
            self.supervisor,
            Settings(),
            self.path,
            CLOCK,
            read_settings=self._read,
            apply=self.applied.append,
        )

    def run(self, condition: Callable[[], bool], *, ended_by: signal.Signals = signal.SIGTERM) -> None:
        """Run until the condition holds, and end it with a signal."""

        async def run_until() -> None:
            running = asyncio.create_task(self.front_run().run())
            async with asyncio.timeout(30):
                while not running.done() and not await asyncio.to_thread(condition):
                    await asyncio.sleep(0.005)
                if not running.done():
                    os.kill(os.getpid(), ended_by)
                await running

        asyncio.run(run_until())


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("f"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_has_the_nodes_state_before_it_answers_and_ends_on_a_signal(world: World, number: signal.Signals) -> None:
    world.run(world.path.exists, ended_by=number)
    assert world.calls == ["follows", "front starts", "front stops", "follows no more"]
    assert not world.path.exists()


def test_its_reports_count_loop_iterations(world: World) -> None:
    progress_seen = set()
    with closing(ReportClient(world.path, CLOCK)) as client:

        def has_iterated() -> bool:
            try:
                report = parse_process_report(client.fetch(5.0))
            except NoReport:
                return False
            assert (report.stage, report.process.pid) == (Stage.STEADY, os.getpid())
            progress_seen.add(report.progress)
            return len(progress_seen) > 2

        world.run(has_iterated)


def test_while_its_kernels_are_being_compiled_it_counts_as_starting(world: World) -> None:
    """Its event loop may be blocked by a query that waits for the kernels: see `Liveness`."""
    world.front.has_kernels = False
    stages = list[Stage]()
    with closing(ReportClient(world.path, CLOCK)) as client:

        def steady() -> bool:
            try:
                stages.append(parse_process_report(client.fetch(5.0)).stage)
            except NoReport:
                return False
            if len(stages) == 2:
                world.front.has_kernels = True
            return stages[-1] is Stage.STEADY

        world.run(steady)
    assert stages[:2] == [Stage.STARTING, Stage.STARTING]


def test_a_front_that_can_not_serve_ends_with_the_reason_and_sends_no_report(world: World) -> None:
    world.front.failure = Fatal("the certificate can't be used")
    with pytest.raises(Fatal, match="certificate"):
        world.run(lambda: False)
    assert not world.path.exists()


def test_new_settings_are_applied_as_far_as_possible(world: World) -> None:
    world.read = lambda: Settings(query={"max_series": 7}, http={"connections": 9}, log={"level": "debug"})
    asyncio.run(world.front_run().reload())
    assert world.front.settings.query.max_series == 7
    assert world.front.settings.http.connections == 1000, "this setting needs a restart"
    assert world.applied == [world.front.settings]


def test_inapplicable_settings_change_nothing(world: World) -> None:
    run = world.front_run()
    world.read = lambda: load_settings(Path("/nowhere.toml"), {})
    with pytest.raises(Exception, match=r"nowhere|wrong"):
        asyncio.run(run.reload())
    world.read = lambda: Settings(query={"max_series": 7})
    world.front.failure = Fatal("the certificate can't be used")
    with pytest.raises(Fatal):
        asyncio.run(run.reload())
    assert world.applied == []


def test_a_reload_over_http_returns_the_changes_of_the_supervisor(world: World) -> None:
    outcome = asyncio.run(world.front_run().reload_node())
    assert outcome.names(TakesEffect.AT_ONCE) == ("query.timeout",)
