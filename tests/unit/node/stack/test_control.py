"""A detached stack with substitutes for the servers: which processes survive when one of them is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.errors import ExitCode
from strandline.node.stack import control
from strandline.node.stack.errors import KeeperFailed, StackBusy, StopTimedOut
from strandline.node.stack.handshake import Handshake, options_message
from strandline.node.stack.process import ProcessIdentity
from strandline.node.stack.record import StackRecord, StackState
from strandline.node.stack.server import Phase
from strandline.node.stack.stack import StackStep
from strandline.node.stack.state import StateFolder
from support.stack import STACK_TIMEOUT, Behaviour, StandIns, eventually, fake_keeper_command, gone, options

pytestmark = pytest.mark.unit

TESTS = Path(__file__).parents[3]
SICK = StandIns(kafka=Behaviour(answer="sick"))

# What `strandline stack up` does, for stand-ins that never become healthy.
UP = """
import sys
from pathlib import Path
from strandline.clock import SystemClock
from strandline.node.stack import control
from support.stack import Behaviour, StandIns, fake_keeper_command, options
control.keeper_command = lambda fd: fake_keeper_command(fd, StandIns(kafka=Behaviour(answer="sick")))
control.start_detached(options(Path(sys.argv[1])), on_step=lambda _: None, clock=SystemClock())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateFolder]:
    """A state folder whose keeper is ended after the test."""
    use(monkeypatch, StandIns())
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    state = StateFolder(tmp_path / "state")
    yield state
    control.stop(state, clock=SystemClock(), timeout=STACK_TIMEOUT)


def use(monkeypatch: pytest.MonkeyPatch, stand_ins: StandIns) -> None:
    monkeypatch.setattr(control, "keeper_command", lambda descriptor: fake_keeper_command(descriptor, stand_ins))


def start(folder: StateFolder) -> tuple[StackRecord, bool]:
    return control.start_detached(options(folder.root), on_step=lambda _: None, clock=SystemClock())


def processes(record: StackRecord) -> list[ProcessIdentity]:
    return [record.keeper, *(server.process for server in record.servers if server.process)]


def starting(folder: StateFolder) -> StackRecord | None:
    """The record of a stack whose two servers run but are not both healthy."""
    record = folder.read()
    return record if record and record.state is StackState.STARTING and len(processes(record)) == 3 else None


def test_stack_stays_after_its_start_until_it_is_stopped(folder: StateFolder) -> None:
    record, started = start(folder)

    assert started
    assert record.state is StackState.UP
    assert all(process.alive() for process in processes(record))

    assert control.stop(folder, clock=SystemClock())
    assert all(gone(process) for process in processes(record))
    assert not control.stop(folder, clock=SystemClock())


def test_second_start_finds_the_first(folder: StateFolder) -> None:
    first, _ = start(folder)

    assert start(folder) == (first, False)


def test_steps_of_the_keeper_are_reported(folder: StateFolder) -> None:
    steps: list[StackStep] = []

    control.start_detached(options(folder.root), on_step=steps.append, clock=SystemClock())

    assert {step.server for step in steps if step.phase is Phase.HEALTHY} == {"kafka", "cassandra"}


def test_killed_keeper_takes_its_servers_with_it_and_the_next_start_is_not_misled(folder: StateFolder) -> None:
    record, _ = start(folder)

    os.kill(record.keeper.pid, signal.SIGKILL)

    assert eventually(lambda: all(gone(process) for process in processes(record)))
    # The record still names these processes, with the state "up".
    assert folder.read() == record
    second, started = start(folder)
    assert started
    assert second.keeper != record.keeper
    assert second.ports == record.ports


def test_server_that_ends_stops_the_stack_and_is_named(folder: StateFolder) -> None:
    record, _ = start(folder)
    kafka = record.servers[0].process
    assert kafka is not None

    os.kill(kafka.pid, signal.SIGKILL)

    assert eventually(lambda: all(gone(process) for process in processes(record)))
    after = folder.read()
    assert after is not None
    assert after.state is StackState.FAILED
    assert "was ended by SIGKILL" in after.failure
    assert "ServerExited" in folder.keeper_log.read_text(encoding="utf-8")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_start_that_is_killed_or_interrupted_leaves_no_process(folder: StateFolder, how: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", UP, str(folder.root)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as up:
        assert eventually(lambda: starting(folder) is not None)
        record = starting(folder)
        assert record is not None

        up.send_signal(how)
        up.wait(STACK_TIMEOUT)

    assert eventually(lambda: all(gone(process) for process in processes(record)))
    assert eventually(lambda: not folder.is_held())


def test_keeper_without_an_answer_stops_everything(folder: StateFolder) -> None:
    folder.prepare()
    near, far = Handshake.pair()
    with far:
        command = fake_keeper_command(far.fileno(), StandIns())
        keeper = subprocess.Popen(command, pass_fds=(far.fileno(),), stderr=subprocess.DEVNULL)
    near.send(options_message(options(folder.root)))
    while (message := near.receive()) is not None and message["type"] != "up":
        pass
    record = folder.read()
    assert record is not None

    # The keeper has reported that the stack is up, but the other end closes before it has received the report.
    near.close()

    assert keeper.wait(STACK_TIMEOUT) != 0
    assert all(gone(process) for process in processes(record))


def test_failure_of_the_keeper_is_reported_by_the_start(folder: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, StandIns(cassandra=Behaviour(exit_code=3, log_line="java.lang.OutOfMemoryError")))

    with pytest.raises(KeeperFailed) as caught:
        start(folder)

    assert caught.value.kind == "ServerExited"
    assert "its heap is too small" in caught.value.message
    assert caught.value.remedy == "Raise stack.cassandra_heap"
    assert "    java.lang.OutOfMemoryError" in caught.value.blocks()
    assert not folder.is_held()


def test_keeper_that_ends_without_an_error_is_reported_with_its_last_lines(
    folder: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [sys.executable, "-c", "raise SystemExit('it broke')"]
    monkeypatch.setattr(control, "keeper_command", lambda _: broken)

    with pytest.raises(KeeperFailed, match="ended without reporting an error, with exit code 1") as caught:
        start(folder)

    assert "    it broke" in caught.value.blocks()
    assert caught.value.exit_code is ExitCode.FAILED


def test_stack_that_another_process_starts_is_waited_for(folder: StateFolder) -> None:
    folder.prepare()
    near, far = Handshake.pair()
    with far:
        keeper = subprocess.Popen(fake_keeper_command(far.fileno(), StandIns()), pass_fds=(far.fileno(),))
    near.send(options_message(options(folder.root)))
    assert eventually(folder.is_held)
    # The other start continues while this one waits. The stack is not up before its keeper has received the answer.
    near.send({"type": "keep"})

    record, started = start(folder)

    assert not started
    assert record.keeper.pid == keeper.pid
    near.close()
    control.stop(folder, clock=SystemClock())
    keeper.wait(STACK_TIMEOUT)


def test_start_gives_up_on_a_folder_that_stays_busy(folder: StateFolder) -> None:
    folder.prepare()
    with folder.lock(), pytest.raises(StackBusy, match="starting or stopping a stack"):
        control.start_detached(options(folder.root, start_timeout=0.3), on_step=lambda _: None, clock=SystemClock())


def test_stop_does_not_signal_a_process_that_merely_has_the_keepers_id(folder: StateFolder) -> None:
    record, _ = start(folder)
    control.stop(folder, clock=SystemClock())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        stale = replace(record, keeper=ProcessIdentity(bystander.pid, start_ticks=1))

        with folder.lock():
            folder.write(stale)
            with pytest.raises(StopTimedOut, match=r"is held by a process that .* does not name"):
                control.stop(folder, clock=SystemClock(), timeout=0.3)

        assert bystander.poll() is None
        bystander.kill()


def test_keepers_command_can_be_found_with_pgrep() -> None:
    assert "stack up --foreground" in " ".join(control.keeper_command(5))
