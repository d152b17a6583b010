"""Both servers are started and stopped together, and no process is ever left."""

import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from strandline.clock import Clock
from strandline.node.stack.errors import (
    DiskTooFull,
    PortInUse,
    ServerExited,
    StackBusy,
    StartCancelled,
    StartTimedOut,
)
from strandline.node.stack.options import StackOptions
from strandline.node.stack.ports import LOOPBACK, Ports
from strandline.node.stack.process import ProcessIdentity
from strandline.node.stack.record import StackState
from strandline.node.stack.server import Phase, Server
from strandline.node.stack.stack import Stack, StackStep
from strandline.node.stack.state import StateFolder
from support.stack import Behaviour, StandIns, eventually, gone, options

pytestmark = pytest.mark.unit


class WatchedServers:
    """Substitutes whose servers and processes the test can check afterwards."""

    def __init__(self, stand_ins: StandIns) -> None:
        self.stand_ins = stand_ins
        self.built: list[Server] = []
        self.processes: set[ProcessIdentity] = set()

    def __call__(
        self, folder: StateFolder, ports: Ports, stack_options: StackOptions, clock: Clock
    ) -> Sequence[Server]:
        servers = self.stand_ins(folder, ports, stack_options, clock)
        self.built.extend(servers)
        return servers

    def on_step(self, _: StackStep) -> None:
        processes = [server.describe().process for server in self.built]
        self.processes.update(process for process in processes if process)

    def all_gone(self) -> bool:
        assert self.processes
        return all(gone(process) for process in self.processes)


def killed(process: ProcessIdentity | None) -> None:
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)


def test_stack_is_up_inside_the_block_and_down_after_it(tmp_path: Path) -> None:
    watched = WatchedServers(StandIns())

    with Stack.start(options(tmp_path), build=watched, on_step=watched.on_step) as stack:
        assert stack.record.state is StackState.UP
        assert StateFolder(tmp_path).read() == stack.record
        assert StateFolder(tmp_path).is_held()
        assert all(server.process and server.process.alive() for server in stack.record.servers)
        host, port = stack.kafka_bootstrap.split(":")
        for address in ((host, int(port)), (stack.cassandra_host, stack.cassandra_port)):
            with socket.create_connection(address, 5):
                pass

    assert watched.all_gone()
    assert not StateFolder(tmp_path).is_held()
    record = StateFolder(tmp_path).read()
    assert record is not None
    assert (record.state, record.failure) == (StackState.DOWN, "")


def test_exception_in_the_block_stops_the_servers(tmp_path: Path) -> None:
    watched = WatchedServers(StandIns())

    with (
        pytest.raises(KeyboardInterrupt),
        Stack.start(options(tmp_path), build=watched, on_step=watched.on_step),
    ):
        raise KeyboardInterrupt

    assert watched.all_gone()
    assert not StateFolder(tmp_path).is_held()


def test_steps_are_reported_in_order_for_each_server(tmp_path: Path) -> None:
    steps: list[StackStep] = []

    with Stack.start(options(tmp_path), build=StandIns(kafka=Behaviour(prepares=True)), on_step=steps.append):
        pass

    rest = [Phase.STARTING, Phase.CHECKING, Phase.HEALTHY, Phase.STOPPING, Phase.STOPPED]
    assert [step.phase for step in steps if step.server == "cassandra"] == rest
    assert [step.phase for step in steps if step.server == "kafka"] == [Phase.PREPARING, *rest]


def test_addresses_stay_the_same_from_run_to_run(tmp_path: Path) -> None:
    with Stack.start(options(tmp_path), build=StandIns()) as first:
        pass
    with Stack.start(options(tmp_path), build=StandIns()) as second:
        assert second.ports == first.ports


def test_server_that_ends_early_is_named_with_the_cause_and_the_other_is_stopped(tmp_path: Path) -> None:
    failing = Behaviour(exit_code=7, log_line="java.io.IOException: No space left on device")
    watched = WatchedServers(StandIns(cassandra=failing))

    with pytest.raises(ServerExited) as caught:
        Stack.start(options(tmp_path), build=watched, on_step=watched.on_step)

    error = caught.value
    assert error.server == "cassandra"
    assert "ended with exit code 7" in error.message
    assert "its disk is full" in error.message
    assert error.details()["log_lines"] == ("begins", "java.io.IOException: No space left on device")
    assert f"  The end of {tmp_path}/logs/cassandra.log:" in error.blocks()
    assert watched.all_gone()
    record = StateFolder(tmp_path).read()
    assert record is not None
    assert (record.state, record.failure) == (StackState.FAILED, error.message)


def test_cause_from_an_earlier_run_is_not_reported_again(tmp_path: Path) -> None:
    for output in ("java.lang.OutOfMemoryError", "nothing special"):
        with pytest.raises(ServerExited) as caught:
            Stack.start(options(tmp_path), build=StandIns(kafka=Behaviour(exit_code=1, log_line=output)))

    assert "heap" not in caught.value.message


def test_server_that_never_becomes_healthy_is_stopped_and_its_failure_reported(tmp_path: Path) -> None:
    watched = WatchedServers(StandIns(kafka=Behaviour(answer="sick")))

    with pytest.raises(StartTimedOut) as caught:
        Stack.start(options(tmp_path, start_timeout=0.8), build=watched, on_step=watched.on_step)

    assert "Stand-in is still checking (it answered 'sick')" in caught.value.message
    assert watched.all_gone()


def test_cancelled_start_stops_what_was_started(tmp_path: Path) -> None:
    watched = WatchedServers(StandIns(kafka=Behaviour(answer="sick")))

    def cancelled() -> bool:
        return any(server.last_failure for server in watched.built)

    with pytest.raises(StartCancelled):
        Stack.start(options(tmp_path), build=watched, on_step=watched.on_step, cancelled=cancelled)

    assert watched.all_gone()


def test_error_in_on_step_stops_what_was_started(tmp_path: Path) -> None:
    watched = WatchedServers(StandIns())

    def on_step(step: StackStep) -> None:
        watched.on_step(step)
        if step.phase is Phase.HEALTHY:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Stack.start(options(tmp_path), build=watched, on_step=on_step)

    assert watched.all_gone()


def test_server_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.node.stack.stack._STOP_TIMEOUT", 0.2)
    watched = WatchedServers(StandIns(kafka=Behaviour(ignores_sigterm=True)))

    with Stack.start(options(tmp_path), build=watched, on_step=watched.on_step):
        pass

    assert watched.all_gone()


def test_port_that_another_process_binds_first_is_replaced(tmp_path: Path) -> None:
    attempts = []

    with socket.socket() as thief:

        def build(folder: StateFolder, ports: Ports, stack_options: StackOptions, clock: Clock) -> Sequence[Server]:
            if not attempts:
                thief.bind((LOOPBACK, ports.kafka))
                thief.listen()
            attempts.append(ports)
            return StandIns()(folder, ports, stack_options, clock)

        with Stack.start(options(tmp_path), build=build) as stack:
            assert stack.ports == attempts[1]

    assert len(attempts) == 2
    assert attempts[0].kafka != attempts[1].kafka
    assert attempts[0].cassandra == attempts[1].cassandra


def test_fixed_port_that_is_snatched_is_an_error(tmp_path: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as free:
        port = free.getsockname()[1]

    with socket.socket() as thief:

        def build(folder: StateFolder, ports: Ports, stack_options: StackOptions, clock: Clock) -> Sequence[Server]:
            thief.bind((LOOPBACK, ports.cassandra))
            thief.listen()
            return StandIns()(folder, ports, stack_options, clock)

        with pytest.raises(PortInUse, match=rf"port {port} of 127\.0\.0\.1 \(stack\.cassandra_port\)"):
            Stack.start(options(tmp_path, cassandra_port=port), build=build)


def test_second_stack_in_the_same_folder_is_refused_and_the_first_continues(tmp_path: Path) -> None:
    with Stack.start(options(tmp_path), build=StandIns()) as first:
        with pytest.raises(StackBusy):
            Stack.start(options(tmp_path), build=StandIns())

        assert StateFolder(tmp_path).read() == first.record
        assert all(server.process and server.process.alive() for server in first.record.servers)


def test_full_disk_is_reported_before_a_server_is_started(tmp_path: Path) -> None:
    watched = WatchedServers(StandIns())

    with pytest.raises(DiskTooFull):
        Stack.start(options(tmp_path, min_free_disk=1 << 60), build=watched)

    assert not watched.built
    assert not StateFolder(tmp_path).is_held()


def test_waiting_ends_with_an_error_when_a_server_ends(tmp_path: Path) -> None:
    watched = WatchedServers(StandIns())
    silent, other_end = socket.socketpair()
    with silent, other_end, Stack.start(options(tmp_path), build=watched, on_step=watched.on_step) as stack:
        killed(stack.record.servers[1].process)

        with pytest.raises(ServerExited, match=r"ended by SIGKILL .*: it was killed") as caught:
            stack.wait(silent.fileno())

    assert caught.value.server == "cassandra"
    assert eventually(watched.all_gone)


def test_waiting_ends_when_the_wake_up_descriptor_is_readable(tmp_path: Path) -> None:
    near, far = socket.socketpair()
    with near, far, Stack.start(options(tmp_path), build=StandIns()) as stack:
        far.send(b"!")

        stack.wait(near.fileno())
