import io
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.errors import ExitCode, Fatal
from strandline.node.masking import SecretMask
from strandline.node.output import Block, JsonOutput, Output, Table, TextOutput, make_output
from strandline.node.steps import Steps

pytestmark = pytest.mark.unit

SECRET = "hunter2-s3cr3t"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    path: Path
    port: int | None


@dataclass(frozen=True, slots=True)
class Servers:
    servers: tuple[Server, ...]

    def blocks(self) -> Iterator[Block]:
        yield "[bold]Two[/bold] servers :smile:"
        yield Table(("name", "where"), tuple((server.name, f"{server.path}:{server.port}") for server in self.servers))


class Lost(Fatal):
    exit_code = ExitCode.DATA_LOST

    def __init__(self) -> None:
        super().__init__("offsets 1 to 7 are lost", remedy="Accept the loss")

    def blocks(self) -> Iterator[Block]:
        yield Table(("from", "to"), (("1", "7"),))

    def details(self) -> dict[str, object]:
        return {"lost": (1, 7)}


SERVERS = Servers((Server("kafka", Path("/x" * 100), 9092), Server(f"cassandra {SECRET}", Path("/y"), None)))


@pytest.fixture
def stdout() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def stderr() -> io.StringIO:
    return io.StringIO()


def output(kind: type[Output], stdout: io.StringIO, stderr: io.StringIO) -> Output:
    return kind(stdout, stderr, ManualClock(), SecretMask([SECRET]))


def test_text_in_a_pipe_is_not_wrapped(stdout: io.StringIO, stderr: io.StringIO) -> None:
    output(TextOutput, stdout, stderr).result(SERVERS)
    assert [line.rstrip() for line in stdout.getvalue().splitlines()] == [
        "[bold]Two[/bold] servers :smile:",
        "name                where",
        "kafka               " + "/x" * 100 + ":9092",
        "cassandra (hidden)  /y:None",
    ]
    assert stderr.getvalue() == ""


def test_text_on_a_terminal_is_wrapped_without_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    stdout = Terminal()
    output(TextOutput, stdout, io.StringIO()).result(SERVERS)
    text = re.sub(r"\x1b\[[0-9;]*m", "", stdout.getvalue())
    assert max(len(line) for line in text.splitlines()) <= 60
    assert text.count("x") == 100


def test_json_is_one_document_of_the_report_s_fields(stdout: io.StringIO, stderr: io.StringIO) -> None:
    output(JsonOutput, stdout, stderr).result(SERVERS)
    assert json.loads(stdout.getvalue()) == {
        "servers": [
            {"name": "kafka", "path": "/x" * 100, "port": 9092},
            {"name": "cassandra (hidden)", "path": "/y", "port": None},
        ]
    }
    assert stderr.getvalue() == ""


def test_an_error_as_text_is_on_stderr_with_its_remedy(stdout: io.StringIO, stderr: io.StringIO) -> None:
    output(TextOutput, stdout, stderr).error(Fatal(f"no [such] thing as {SECRET}", remedy="Make one"))
    assert stderr.getvalue() == "error: no [such] thing as (hidden)\n  Make one\n"
    assert stdout.getvalue() == ""


def test_an_error_without_a_remedy_is_one_line(stdout: io.StringIO, stderr: io.StringIO) -> None:
    output(TextOutput, stdout, stderr).error(Fatal("no such thing"))
    assert stderr.getvalue() == "error: no such thing\n"


def test_an_error_as_json_is_the_only_document_on_stdout(stdout: io.StringIO, stderr: io.StringIO) -> None:
    output(JsonOutput, stdout, stderr).error(Fatal(f"no such thing as {SECRET}", remedy="Make one"))
    assert json.loads(stdout.getvalue()) == {
        "error": {
            "type": "Fatal",
            "message": "no such thing as (hidden)",
            "remedy": "Make one",
            "exit_code": 1,
            "retryable": False,
        }
    }
    assert stderr.getvalue() == ""


def test_an_error_may_have_details(stdout: io.StringIO, stderr: io.StringIO) -> None:
    output(TextOutput, stdout, stderr).error(Lost())
    assert [line.rstrip() for line in stderr.getvalue().splitlines()] == [
        "error: offsets 1 to 7 are lost",
        "  Accept the loss",
        "from  to",
        "1     7",
    ]
    output(JsonOutput, stdout, stderr).error(Lost())
    error = json.loads(stdout.getvalue())["error"]
    assert (error["lost"], error["exit_code"]) == ([1, 7], 3)


def crashed() -> Exception:
    try:
        raise RuntimeError(f"unforeseen {SECRET}")
    except RuntimeError as error:
        return error


def test_a_crash_shows_its_traceback_on_stderr(stdout: io.StringIO, stderr: io.StringIO) -> None:
    output(TextOutput, stdout, stderr).crash(crashed())
    assert stderr.getvalue().startswith("Traceback (most recent call last):\n")
    assert stderr.getvalue().endswith("RuntimeError: unforeseen (hidden)\n")
    assert stdout.getvalue() == ""


def test_a_crash_is_a_json_document_too(stdout: io.StringIO, stderr: io.StringIO) -> None:
    output(JsonOutput, stdout, stderr).crash(crashed())
    assert "RuntimeError: unforeseen (hidden)" in stderr.getvalue()
    error = json.loads(stdout.getvalue())["error"]
    assert (error["type"], error["message"], error["exit_code"]) == ("RuntimeError", "unforeseen (hidden)", 1)


def test_the_format_chooses_the_output(stdout: io.StringIO, stderr: io.StringIO) -> None:
    assert isinstance(make_output("text", stdout, stderr, ManualClock(), SecretMask()), TextOutput)
    assert isinstance(make_output("json", stdout, stderr, ManualClock(), SecretMask()), JsonOutput)


def fail(steps: Steps, name: str, clock: ManualClock) -> None:
    with steps.step(name):
        clock.sleep(1)
        raise ValueError("no")


@pytest.mark.parametrize("kind", [TextOutput, JsonOutput])
def test_steps_are_lines_on_stderr_with_times_off_a_terminal(
    stdout: io.StringIO, stderr: io.StringIO, kind: type[Output]
) -> None:
    clock = ManualClock()
    with kind(stdout, stderr, clock, SecretMask()).steps("Starting") as steps:
        with steps.step("Kafka") as kafka:
            clock.sleep(4.84)
            with steps.step("Cassandra"):
                clock.sleep(70)
            kafka.note = "port 9092"
        with pytest.raises(ValueError, match="no"):
            fail(steps, "Third", clock)
    assert stderr.getvalue() == (
        "Starting\n  Cassandra: 1 min 10 s\n  Kafka (port 9092): 1 min 15 s\n  Third: failed after 1.0 s\n"
    )
    assert stdout.getvalue() == ""


def test_steps_of_several_threads_have_separate_lines(stdout: io.StringIO, stderr: io.StringIO) -> None:
    with output(TextOutput, stdout, stderr).steps("Starting") as steps:
        both_begun = threading.Barrier(2)

        def run_step(name: str) -> None:
            with steps.step(name):
                both_begun.wait(timeout=60)

        threads = [threading.Thread(target=run_step, args=(name,)) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(stderr.getvalue().splitlines()) == ["  one: 0.0 s", "  two: 0.0 s", "Starting"]


def test_steps_have_a_spinner_on_a_terminal_and_end_with_their_times(
    monkeypatch: pytest.MonkeyPatch, stdout: io.StringIO
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    stderr, clock = Terminal(), ManualClock()
    with TextOutput(stdout, stderr, clock, SecretMask()).steps("Starting [up]") as steps:
        with steps.step("Kafka [1]") as step:
            clock.sleep(4.84)
            step.note = "port 9092"
        with pytest.raises(ValueError, match="no"):
            fail(steps, "Cassandra", clock)
    assert "\x1b[" in stderr.getvalue()
    last = stderr.getvalue().split("Kafka [1]")[-1]
    assert "4.8 s  port 9092" in last
    assert "failed after 1.0 s" in last
    assert "Starting [up]" in stderr.getvalue()
    assert stdout.getvalue() == ""
