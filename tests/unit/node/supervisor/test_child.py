"""A real process as the supervisor's child: the reason of its end, its log, and its end with the supervisor."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from strandline.clock import SystemClock, wait_until
from strandline.node.cli import main as cli
from strandline.node.exit_reason import ExitReason, exit_reason
from strandline.node.supervisor import child as child_module
from strandline.node.supervisor.child import LaunchFailed, ProcessChild, cpu_seconds
from strandline.node.supervisor.launching import ProcessLauncher, front_command, shard_command, worker_command
from strandline.node.supervisor.stderr_relay import StderrRelay

pytestmark = pytest.mark.unit

PYTHON = [sys.executable, "-I", "-S", "-c"]


def exit_code_of(child: ProcessChild) -> int:
    assert wait_until(lambda: child.poll() is not None, timeout=30, clock=SystemClock(), poll=0.01)
    code = child.poll()
    assert code is not None
    return code


def run(code: str) -> ProcessChild:
    return ProcessChild([*PYTHON, code], {})


def parsed(command: list[str]) -> tuple[dict[str, object], cli.Context]:
    """The parameters and the context that our command line parses from a command."""
    _, _, *arguments = command
    context = cli.Context({}, sys.stdout, sys.stderr, SystemClock())
    command_or_group: click.Command | None = cli.strandline
    root = click.Context(cli.strandline)
    while isinstance(command_or_group, click.Group):
        name, *arguments = arguments
        command_or_group = command_or_group.get_command(root, name)
    assert command_or_group is not None
    return command_or_group.make_context(command_or_group.name, arguments, obj=context).params, context


@pytest.mark.parametrize("take", [False, True])
def test_the_command_line_of_a_shard_is_valid(take: bool) -> None:
    command = shard_command(3, Path("/run/s.sock"), Path("/etc/x.toml"), take=take)
    parameters, context = parsed(command)
    assert (parameters["shard"], parameters["socket"], parameters["shared_worker"]) == (3, Path("/run/s.sock"), True)
    assert (context.config, context.output_format) == (Path("/etc/x.toml"), "json")
    assert parameters["take"] is take


def test_the_command_line_of_the_front_is_valid() -> None:
    parameters, context = parsed(front_command(Path("/run/n"), 5, Path("/run/n/front.sock"), Path("/etc/x.toml")))
    assert parameters == {"node_folder": Path("/run/n"), "listen_fd": 5, "report_socket": Path("/run/n/front.sock")}
    assert (context.config, context.output_format) == (Path("/etc/x.toml"), "json")


def test_the_command_line_of_the_worker_is_valid() -> None:
    parameters, context = parsed(worker_command(Path("/run/n/worker.sock"), Path("/etc/x.toml")))
    assert parameters == {"socket": Path("/run/n/worker.sock")}
    assert (context.config, context.output_format) == (Path("/etc/x.toml"), "json")


def test_an_error_printed_as_json_is_its_exit_reason() -> None:
    error = {"error": {"type": "X", "message": "it is lost", "remedy": "Accept it", "exit_code": 3, "retryable": True}}
    assert exit_reason(json.dumps(error).encode(), "a line") == ExitReason("it is lost", "Accept it", retryable=True)
    assert str(exit_reason(json.dumps(error).encode(), "")) == "it is lost. Accept it"


def test_a_full_disk_is_named_in_its_exit_reason_though_no_disk_can_store_it() -> None:
    error = {"error": {"message": "the disk of /data is full", "remedy": "", "retryable": True, "full_disk": "/data"}}
    child = run(f"import sys; print({json.dumps(error)!r}); sys.exit(1)")
    assert exit_code_of(child) == 1
    assert child.exit_reason() == ExitReason("the disk of /data is full", retryable=True, full_disk="/data")


@pytest.mark.parametrize("printed", [b"", b"{", b"[]", b'{"error": 1}', b'{"error": {}}', b"# A fatal error"])
def test_without_an_error_the_last_line_of_its_log_is_its_exit_reason(printed: bytes) -> None:
    assert exit_reason(printed, "MemoryError") == ExitReason("MemoryError")
    assert exit_reason(printed, '{"event": "storing has failed", "level": "error"}') == ExitReason("storing has failed")


@pytest.mark.parametrize("level", ["debug", "info"])
def test_an_informational_line_is_no_exit_reason(level: str) -> None:
    assert exit_reason(b"", json.dumps({"event": "phase", "phase": "active", "level": level})) == ExitReason()


def test_exit_code_and_last_line_are_known_as_soon_as_it_has_ended() -> None:
    child = run("import sys; sys.stderr.write('one\\n\\nlast\\n\\n'); sys.exit(7)")
    assert exit_code_of(child) == 7
    assert child.exit_reason() == ExitReason("last")


def test_a_line_without_a_newline_counts_too() -> None:
    child = run("import sys, os; sys.stderr.write('one\\nabort'); sys.stderr.flush(); os.kill(os.getpid(), 9)")
    assert exit_code_of(child) == -9
    assert child.exit_reason() == ExitReason("abort")


def test_a_program_that_can_not_be_run_is_reported(tmp_path: Path) -> None:
    child = ProcessChild([str(tmp_path / "missing")], {})
    assert exit_code_of(child) == 126
    assert "missing can't be run" in child.exit_reason().message


def test_a_machine_without_memory_for_another_process_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(child_module.subprocess, "Popen", fail)
    with pytest.raises(LaunchFailed, match="Cannot allocate memory"):
        run("")


def test_systemds_variables_are_not_passed_on(tmp_path: Path) -> None:
    environ = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1", "PATH": "/bin"}
    launcher = ProcessLauncher(None, environ, tmp_path)
    assert launcher._environment == {"PATH": "/bin"}


def test_a_path_in_its_exit_reason_that_is_not_utf8_can_be_reported() -> None:
    printed = json.dumps({"error": {"message": "the folder /data/\udcff", "remedy": ""}}).encode()
    assert exit_reason(printed, "").message == "the folder /data/?"


def test_a_descriptor_that_is_passed_on_keeps_its_number() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number = listener.fileno()
        code = f"import socket, sys; sys.exit(socket.socket(fileno={number}).getsockname()[1] % 250)"
        child = ProcessChild([*PYTHON, code], {}, descriptors=(number,))
        assert exit_code_of(child) == listener.getsockname()[1] % 250


def test_it_ends_when_stopped_or_killed() -> None:
    terminated = run("import time; time.sleep(300)")
    terminated.terminate()
    assert exit_code_of(terminated) == -signal.SIGTERM
    killed = run("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(300)")
    killed.kill()
    assert exit_code_of(killed) == -signal.SIGKILL
    killed.kill()
    killed.terminate()


def test_its_cpu_time_counts_its_work() -> None:
    child = run("while True: pass")
    try:
        assert wait_until(lambda: (child.cpu_seconds() or 0) > 0.2, timeout=60, clock=SystemClock(), poll=0.05)
    finally:
        child.kill()
    exit_code_of(child)
    assert cpu_seconds(child.pid) is None, "the ended process was reaped"


def test_it_is_killed_with_the_process_that_started_it() -> None:
    script = (
        "import sys, time; from strandline.node.supervisor.child import ProcessChild;"
        f"c = ProcessChild({[*PYTHON, 'import time; time.sleep(300)']!r}, {{}});"
        "print(c.pid, flush=True); time.sleep(300)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    has_ended = wait_until(lambda: not is_running(pid), timeout=30, clock=SystemClock(), poll=0.02)
    assert has_ended


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class TestStderrRelay:
    @pytest.fixture
    def pipes(self) -> Iterator[tuple[StderrRelay, int, int]]:
        from_child, child_end = os.pipe()
        relayed, target = os.pipe()
        relay = StderrRelay(os.fdopen(from_child, "rb"), target)
        yield relay, child_end, relayed
        os.close(relayed)
        os.close(target)

    def test_lines_are_relayed_complete_and_unchanged(self, pipes: tuple[StderrRelay, int, int]) -> None:
        relay, child, relayed = pipes
        os.write(child, b"one\ntw")
        assert os.read(relayed, 100) == b"one\n"
        os.write(child, b"o\n")
        assert os.read(relayed, 100) == b"two\n"
        os.write(child, b"unended")
        os.close(child)
        assert os.read(relayed, 100) == b"unended"
        assert relay.last_line() == "unended"

    def test_a_closed_stderr_does_not_end_the_relay(self) -> None:
        from_child, child = os.pipe()
        unread, target = os.pipe()
        os.close(unread)
        relay = StderrRelay(os.fdopen(from_child, "rb"), target)
        os.write(child, b"one\n")
        assert relay.last_line() == "one"
        os.close(child)
        os.close(target)
