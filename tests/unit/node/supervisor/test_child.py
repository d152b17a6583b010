"""A real process as the supervisor's child: its last words, its log, and its tie to the supervisor."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from strandline.clock import SystemClock, wait_until
from strandline.node.cli import main as cli
from strandline.node.supervisor import child as child_module
from strandline.node.supervisor.child import (
    LastWords,
    LaunchFailed,
    ProcessChild,
    ProcessLauncher,
    shard_command,
    words_of,
)
from strandline.node.supervisor.process_time import cpu_seconds
from strandline.node.supervisor.voice import Voice

pytestmark = pytest.mark.unit

PYTHON = [sys.executable, "-I", "-S", "-c"]


def ended(child: ProcessChild) -> int:
    assert wait_until(lambda: child.poll() is not None, timeout=30, clock=SystemClock(), poll=0.01)
    code = child.poll()
    assert code is not None
    return code


def run(code: str, folder: Path, environ: dict[str, str] | None = None) -> ProcessChild:
    return ProcessChild([*PYTHON, code], folder / "said", environ or {})


@pytest.mark.parametrize("after_fencing", [False, True])
def test_the_command_line_is_one_that_a_shard_takes(after_fencing: bool) -> None:
    _, _, name, *arguments = shard_command(3, Path("/run/s.sock"), Path("/etc/x.toml"), after_fencing=after_fencing)
    root = click.Context(cli.strandline)
    command = cli.strandline.get_command(root, name)
    assert command is not None
    context = cli.Context({}, sys.stdout, sys.stderr, SystemClock())
    given = command.make_context(name, arguments, obj=context).params
    assert (given["shard"], given["socket"]) == (3, Path("/run/s.sock"))
    assert (context.config, context.output_format) == (Path("/etc/x.toml"), "json")
    if after_fencing:
        assert given["after_fencing"]


def test_an_error_that_was_told_as_json_is_its_last_word() -> None:
    told = {"error": {"type": "X", "message": "it is lost", "remedy": "Accept it", "exit_code": 3, "retryable": True}}
    assert words_of(json.dumps(told).encode(), "a line") == LastWords("it is lost", "Accept it", passing=True)
    assert str(words_of(json.dumps(told).encode(), "")) == "it is lost. Accept it"


@pytest.mark.parametrize("said", [b"", b"{", b"[]", b'{"error": 1}', b'{"error": {}}', b"# A fatal error"])
def test_without_one_the_last_line_of_its_log_is(said: bytes) -> None:
    assert words_of(said, "MemoryError") == LastWords("MemoryError")
    assert words_of(said, '{"event": "storing has failed", "level": "error"}') == LastWords("storing has failed")


@pytest.mark.parametrize("level", ["debug", "info"])
def test_a_line_that_tells_how_things_go_is_no_reason(level: str) -> None:
    assert words_of(b"", json.dumps({"event": "phase", "phase": "active", "level": level})) == LastWords()


def test_exit_code_and_last_line_are_known_as_soon_as_it_has_ended(tmp_path: Path) -> None:
    child = run("import sys; sys.stderr.write('one\\n\\nlast\\n\\n'); sys.exit(7)", tmp_path)
    assert ended(child) == 7
    assert child.last_words() == LastWords("last")


def test_a_line_without_an_end_counts_too(tmp_path: Path) -> None:
    child = run(
        "import sys, os; sys.stderr.write('one\\nabort'); sys.stderr.flush(); os.kill(os.getpid(), 9)", tmp_path
    )
    assert ended(child) == -9
    assert child.last_words() == LastWords("abort")


def test_a_process_that_can_t_be_run_says_so(tmp_path: Path) -> None:
    child = ProcessChild([str(tmp_path / "missing")], tmp_path / "said", {})
    assert ended(child) == 126
    assert "missing can't be run" in child.last_words().message


def test_a_machine_without_room_for_another_process_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(child_module.subprocess, "Popen", no_room)
    with pytest.raises(LaunchFailed, match="Cannot allocate memory"):
        run("", tmp_path)


def test_what_systemd_told_the_node_is_not_handed_on(tmp_path: Path) -> None:
    environ = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1", "PATH": "/bin"}
    launcher = ProcessLauncher(None, environ, tmp_path)
    assert launcher._environment == {"PATH": "/bin"}


def test_asking_and_killing_end_it(tmp_path: Path) -> None:
    polite = run("import time; time.sleep(300)", tmp_path)
    polite.terminate()
    assert ended(polite) == -signal.SIGTERM
    rude = run("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(300)", tmp_path)
    rude.kill()
    assert ended(rude) == -signal.SIGKILL
    rude.kill()
    rude.terminate()


def test_work_shows_in_its_cpu_time(tmp_path: Path) -> None:
    child = run("while True: pass", tmp_path)
    try:
        assert wait_until(lambda: (child.cpu_seconds() or 0) > 0.2, timeout=60, clock=SystemClock(), poll=0.05)
    finally:
        child.kill()
    ended(child)
    assert cpu_seconds(child.pid) is None, "it has been waited for"


def test_it_is_killed_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from strandline.node.supervisor.child import ProcessChild;"
        f"c = ProcessChild({[*PYTHON, 'import time; time.sleep(300)']!r}, Path({str(tmp_path / 'said')!r}), {{}});"
        "print(c.pid, flush=True); time.sleep(300)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    gone = wait_until(lambda: not is_running(pid), timeout=30, clock=SystemClock(), poll=0.02)
    assert gone


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class TestVoice:
    @pytest.fixture
    def pipes(self) -> Iterator[tuple[Voice, int, int]]:
        from_child, child_end = os.pipe()
        heard, to = os.pipe()
        voice = Voice(os.fdopen(from_child, "rb"), to)
        yield voice, child_end, heard
        os.close(heard)
        os.close(to)

    def test_lines_pass_on_whole_and_as_they_are(self, pipes: tuple[Voice, int, int]) -> None:
        voice, child, heard = pipes
        os.write(child, b"one\ntw")
        assert os.read(heard, 100) == b"one\n"
        os.write(child, b"o\n")
        assert os.read(heard, 100) == b"two\n"
        os.write(child, b"unended")
        os.close(child)
        assert os.read(heard, 100) == b"unended"
        assert voice.last_line() == "unended"

    def test_nobody_who_listens_is_no_reason_to_stop(self) -> None:
        from_child, child = os.pipe()
        nobody, to = os.pipe()
        os.close(nobody)
        voice = Voice(os.fdopen(from_child, "rb"), to)
        os.write(child, b"one\n")
        assert voice.last_line() == "one"
        os.close(child)
        os.close(to)
