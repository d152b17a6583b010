"""The `strandline` command: help, shared options and errors."""

import errno
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from strandline.errors import ExitCode, Fatal, Retryable
from strandline.node.cli import main as cli
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import EXIT_CODES
from strandline.node.cli.options import Command, Group, LazyCommand, LazyGroup
from strandline.node.settings import load

pytestmark = pytest.mark.unit

SECRET = "hunter2-s3cr3t"


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(load, "DEFAULT_FILE", tmp_path / "none.toml")
    for name in [name for name in os.environ if name.startswith("STRANDLINE_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A command `trial` that records its arguments and calls `trial["act"]`."""
    recorded: dict[str, object] = {}

    @click.command("trial", cls=Command)
    @click.option("--count", type=int, default=1)
    @pass_context
    def command(context: Context, count: int) -> object:
        recorded.update(config=context.config, output=context.output_format, count=count, context=context)
        act = recorded.get("act")
        return act(context) if callable(act) else None

    module = ModuleType("trial_command")
    module.command = command  # type: ignore[attr-defined]  # only for this test
    monkeypatch.setitem(sys.modules, "trial_command", module)
    monkeypatch.setitem(cli.strandline._lazy, "trial", LazyCommand("trial_command", "A trial."))
    return recorded


def commands(group: click.Group, path: str = "strandline") -> Iterator[tuple[str, click.Command]]:
    yield path, group
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def test_help_names_the_commands_and_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("-h", "--help"):
        assert cli.main([option]) == ExitCode.OK
        captured = capsys.readouterr().out
        assert "  check-config   Check the settings and show where each one comes from.\n" in captured
        for code in ExitCode:
            assert f"    {code.value:<4}{EXIT_CODES[code]}\n" in captured


def test_every_command_takes_the_shared_options_and_shows_an_example() -> None:
    for path, command in commands(cli.strandline):
        options = {option for parameter in command.params for option in parameter.opts}
        assert {"--config", "--output"} <= options, path
        assert command.help is not None, path
        assert "\b\nExample" in command.help, path


def test_help_imports_no_slow_modules() -> None:
    script = (
        "import sys; from strandline.node.cli.main import main; code = main(['--help']);"
        "print(code, *sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    code, *modules = done.stderr.split()
    assert code == "0"
    assert "click" in modules
    heavy = {"pyspark", "numba", "lucene", "cassandra", "numpy", "pyarrow", "confluent_kafka", "pydantic", "structlog"}
    assert heavy & set(modules) == set()


def test_a_command_whose_module_is_missing_is_left_out_of_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    existing = LazyCommand("strandline.node.cli.check_config", "There.")
    group = LazyGroup("g", lazy={"here": existing, "gone": LazyCommand("strandline.node.cli.no_such_module", "Gone.")})
    with pytest.raises(click.exceptions.Exit):
        group.make_context("g", ["--help"], obj=None)
    captured = capsys.readouterr().out
    assert "here  There." in captured
    assert "Gone." not in captured
    assert group.get_command(click.Context(group), "gone") is None


def lazy_command(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> LazyGroup:
    """A group whose command `one` is in a module with this text."""
    name = f"command_of_{folder.name}"
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    return LazyGroup("g", lazy={"one": LazyCommand(name, "One.")})


def test_no_garbage_is_collected_while_a_command_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Enough objects for many collections.
    group = lazy_command(tmp_path, monkeypatch, "made = [[] for _ in range(100_000)]\ncommand = None")
    phases = list[str]()
    gc.callbacks.append(note := lambda phase, _: phases.append(phase))
    try:
        group.get_command(click.Context(group), "one")
    finally:
        gc.callbacks.remove(note)
    assert phases == []
    assert gc.isenabled()


def test_garbage_is_collected_again_if_a_command_can_not_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = lazy_command(tmp_path, monkeypatch, "raise RuntimeError")
    with pytest.raises(RuntimeError):
        group.get_command(click.Context(group), "one")
    assert gc.isenabled()


def test_the_version_is_exposed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == ExitCode.OK
    assert capsys.readouterr().out == "strandline 0.2.0\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--config", "a.toml", "--output", "json", "trial"],
        ["trial", "--config", "a.toml", "--output", "json"],
        ["--config", "a.toml", "trial", "--output=json"],
        ["--config", "b.toml", "--output", "text", "trial", "--config", "a.toml", "--output", "json"],
    ],
)
def test_shared_options_mean_the_same_before_and_after_the_command(
    trial: dict[str, object], arguments: list[str]
) -> None:
    assert cli.main(arguments) == ExitCode.OK
    assert (trial["config"], trial["output"]) == (Path("a.toml"), "json")


def test_shared_options_work_between_a_group_and_its_command() -> None:
    passed = []
    group = Group("outer")

    @group.group("inner")
    def inner() -> None:
        pass

    @inner.command("verb")
    @pass_context
    def verb(context: Context) -> None:
        passed.append(context.output_format)

    for arguments in (["--output", "json", "inner", "verb"], ["inner", "--output", "json", "verb"]):
        context = Context({}, sys.stdout, sys.stderr, None)  # type: ignore[arg-type]  # the clock is not used
        with group.make_context("outer", arguments, obj=context) as root:
            group.invoke(root)
    assert passed == ["json", "json"]
    assert isinstance(inner, Group)
    assert isinstance(verb, Command)


def test_the_number_that_a_command_returns_is_the_exit_code(trial: dict[str, object]) -> None:
    trial["act"] = lambda _context: ExitCode.VERIFY_FAILED
    assert cli.main(["trial"]) == 4
    trial["act"] = lambda _context: click.get_current_context().exit(3)
    assert cli.main(["trial"]) == 3
    trial["act"] = lambda _context: "something else"
    assert cli.main(["trial"]) == 0


def fail(error: BaseException) -> object:
    def act(context: Context) -> None:
        context.mask.add([SECRET])
        raise error

    return act


class Lost(Fatal):
    exit_code = ExitCode.DATA_LOST


def test_an_expected_error_has_its_message_remedy_and_exit_code(
    trial: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    trial["act"] = fail(Lost(f"gone with {SECRET}", remedy="Accept it"))
    assert cli.main(["trial"]) == ExitCode.DATA_LOST
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "error: gone with (hidden)\n  Accept it\n")
    assert cli.main(["trial", "--output", "json"]) == ExitCode.DATA_LOST
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"] == {
        "type": "Lost",
        "message": "gone with (hidden)",
        "remedy": "Accept it",
        "exit_code": 3,
        "retryable": False,
    }
    assert captured.err == ""
    trial["act"] = fail(Retryable("later"))
    assert cli.main(["trial"]) == ExitCode.FAILED


def test_an_unexpected_error_has_a_traceback_without_secrets(
    trial: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    trial["act"] = fail(RuntimeError(f"surprise {SECRET}"))
    assert cli.main(["trial"]) == ExitCode.FAILED
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Traceback")
    assert captured.err.endswith("RuntimeError: surprise (hidden)\n")
    assert cli.main(["trial", "--output", "json"]) == ExitCode.FAILED
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"]["message"] == "surprise (hidden)"
    assert "RuntimeError: surprise (hidden)" in captured.err


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_reported_with_path_and_remedy_instead_of_a_crash(
    trial: dict[str, object], capsys: pytest.CaptureFixture[str], number: int
) -> None:
    trial["act"] = fail(OSError(number, "No space left on device", "/data/x"))
    assert cli.main(["trial", "--output", "json"]) == ExitCode.FAILED
    captured = capsys.readouterr()
    error = json.loads(captured.out)["error"]
    assert (error["type"], error["retryable"], error["full_disk"]) == ("DiskFull", True, "/data/x")
    assert error["message"] == "the disk of /data/x is full"
    assert "Free space" in error["remedy"]
    assert "Traceback" not in captured.err
    trial["act"] = fail(OSError(number, "No space left on device"))
    assert cli.main(["trial"]) == ExitCode.FAILED
    assert capsys.readouterr().err.startswith("error: a disk that this process writes to is full\n  Free space")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_has_its_own_exit_code(
    trial: dict[str, object], capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    trial["act"] = fail(error)
    assert cli.main(["trial"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"
    assert cli.main(["trial", "--output", "json"]) == 130
    assert json.loads(capsys.readouterr().out)["error"]["exit_code"] == 130


def test_a_broken_pipe_to_a_server_is_reported_and_not_taken_for_a_closed_stdout(
    trial: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    trial["act"] = fail(BrokenPipeError(32, "Broken pipe"))
    assert cli.main(["trial"]) == ExitCode.FAILED
    assert "BrokenPipeError" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message", "remedy"),
    [
        (["bogus"], "No such command 'bogus'", "See `strandline --help`"),
        (["--bogus"], "No such option '--bogus'", "See `strandline --help`"),
        (
            ["trial", "--count", "x"],
            "Invalid value for '--count': 'x' is not a valid integer",
            "strandline trial --help",
        ),
        (["trial", "extra"], "Got unexpected extra argument (extra)", "See `strandline trial --help`"),
        (["--output", "xml", "trial"], "Invalid value for '--output': 'xml' is not one of 'text', 'json'", "--help"),
    ],
)
@pytest.mark.usefixtures("trial")
def test_an_invalid_command_line_is_reported_in_the_requested_format(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str, remedy: str
) -> None:
    assert cli.main(arguments) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"error: {message}\n  ")
    assert remedy in captured.err
    for option in (["--output", "json"], ["--output=json"]):
        assert cli.main([*arguments, *option]) == ExitCode.USAGE
        error = json.loads(capsys.readouterr().out)["error"]
        assert (error["message"], error["exit_code"]) == (message, 2)


def test_without_a_command_the_help_is_shown_with_the_usage_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Usage: strandline" in captured.err
    assert cli.main(["--output", "json"]) == ExitCode.USAGE
    assert json.loads(capsys.readouterr().out)["error"]["message"] == "Missing command"


def test_settings_are_loaded_once_and_their_secrets_masked_from_then_on(
    trial: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    credentials = tmp_path / "credentials"
    credentials.write_text(f"me\n{SECRET}\n", encoding="utf-8")
    credentials.chmod(0o600)
    monkeypatch.setenv("STRANDLINE_CASSANDRA__CREDENTIALS_FILE", str(credentials))

    def act(context: Context) -> None:
        assert context.settings() is context.settings()
        raise RuntimeError(f"the driver said {SECRET}")

    trial["act"] = act
    assert cli.main(["trial"]) == ExitCode.FAILED
    assert capsys.readouterr().err.endswith("RuntimeError: the driver said (hidden)\n")


class TestAsAProcess:
    """Tests that need a real process."""

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("STRANDLINE_")}
        command = [sys.executable, "-c", "import sys; from strandline.node.cli.main import main; sys.exit(main())"]
        return subprocess.Popen([*command, *arguments], env=environ, **options)  # type: ignore[call-overload,no-any-return]  # options vary

    @pytest.mark.parametrize("arguments", [["check-config"], ["check-config", "--output", "json"], ["--help"]])
    def test_a_broken_pipe_is_not_reported(self, arguments: list[str]) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        process = self.start(*arguments, stdout=writing, stderr=subprocess.PIPE)
        os.close(writing)
        _, stderr = process.communicate(timeout=60)
        assert stderr == b""
        assert process.returncode == ExitCode.FAILED

    def test_the_exit_code_reaches_the_shell(self) -> None:
        process = self.start("bogus", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (2, b"")
        assert err == b"error: No such command 'bogus'\n  See `strandline --help`\n"

    def test_ctrl_c_ends_it_with_130(self, tmp_path: Path) -> None:
        fifo = tmp_path / "strandline.toml"
        os.mkfifo(fifo)
        process = self.start("check-config", "--config", str(fifo), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # Opening the FIFO returns once the command has opened it, and then the command waits for data.
        with fifo.open("wb", buffering=0):
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (130, b"error: interrupted\n")
