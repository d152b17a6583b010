"""The keeper in the foreground: it runs until a signal, and then stops its servers."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from strandline.errors import ExitCode
from strandline.node.stack.keeper import stop_on_signals
from strandline.node.stack.process import ProcessIdentity
from strandline.node.stack.record import StackState
from strandline.node.stack.state import StateFolder
from support.stack import STACK_TIMEOUT, Behaviour, StandIns, eventually, fake_foreground_command, gone

pytestmark = pytest.mark.unit


def servers(folder: StateFolder) -> list[ProcessIdentity]:
    record = folder.read()
    return [server.process for server in record.servers if server.process] if record else []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_stops_a_stack_that_is_up_in_order(tmp_path: Path, how: signal.Signals) -> None:
    folder = StateFolder(tmp_path)
    with subprocess.Popen(fake_foreground_command(tmp_path, StandIns()), stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == "up\n"
        running = servers(folder)

        keeper.send_signal(how)

        assert keeper.wait(STACK_TIMEOUT) == ExitCode.OK
    assert len(running) == 2
    assert all(gone(process) for process in running)
    record = folder.read()
    assert record is not None
    assert record.state is StackState.DOWN


def test_signal_during_the_start_cancels_it(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    command = fake_foreground_command(tmp_path, StandIns(kafka=Behaviour(answer="sick")))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as keeper:
        assert eventually(lambda: len(servers(folder)) == 2)
        running = servers(folder)

        keeper.send_signal(signal.SIGINT)

        assert keeper.wait(STACK_TIMEOUT) == ExitCode.INTERRUPTED
        assert keeper.stderr is not None
        assert "StartCancelled" in keeper.stderr.read()
    assert all(gone(process) for process in running)


def test_killed_keeper_leaves_no_server(tmp_path: Path) -> None:
    with subprocess.Popen(fake_foreground_command(tmp_path, StandIns()), stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == "up\n"
        running = servers(StateFolder(tmp_path))

        keeper.kill()

    assert len(running) == 2
    assert eventually(lambda: all(gone(process) for process in running))


def test_server_that_ends_makes_the_keeper_end_with_an_error(tmp_path: Path) -> None:
    command = fake_foreground_command(tmp_path, StandIns())
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        assert keeper.stderr is not None
        assert keeper.stdout.readline() == "up\n"
        first, second = servers(StateFolder(tmp_path))

        os.kill(first.pid, signal.SIGKILL)

        assert keeper.wait(STACK_TIMEOUT) == ExitCode.FAILED
        assert "was ended by SIGKILL" in keeper.stderr.read()
    assert gone(second)


def test_signal_handlers_are_restored_when_the_keeper_has_ended() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    with stop_on_signals() as request:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert request.is_made

    assert {number: signal.getsignal(number) for number in before} == before
