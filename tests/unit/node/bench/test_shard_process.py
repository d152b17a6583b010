"""`ShardProcess`, with small programs in place of a shard."""

import json
import signal
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strandline.clock import ManualClock, SystemClock, wait_until
from strandline.node import own_command
from strandline.node.bench.shard_process import ShardProcess
from strandline.node.own_command import CommandEnded, Status
from strandline.node.settings.load import load_settings
from strandline.node.settings.writing import write_settings

pytestmark = pytest.mark.unit

Start = Callable[..., ShardProcess]

# The beginning of each program: a function that writes its status atomically.
SAY = """
import json, os, signal, sys
path = sys.argv[sys.argv.index("--status-file") + 1]
def write_status(**status):
    with open(path + ".new", "w") as file:
        json.dump(status, file)
    os.replace(path + ".new", path)
"""
WAITS = "\nwrite_status(phase='active')\nwhile True: signal.pause()\n"


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a program in place of a shard."""
    started: list[ShardProcess] = []

    def make(program: str, *, extra: tuple[str, ...] = ()) -> ShardProcess:
        command = [sys.executable, "-I", "-S", "-c", SAY + program]
        monkeypatch.setattr(own_command, "tethered", lambda arguments: [*command, *arguments])
        process = ShardProcess(3, tmp_path / "settings.toml", tmp_path, SystemClock(), extra)
        started.append(process)
        return process

    yield make
    for process in started:
        process.kill()


def is_active(status: Status) -> bool:
    return bool(status["phase"] == "active")


def test_it_is_the_command_for_its_shard_with_its_settings_and_its_status_file(start: Start, tmp_path: Path) -> None:
    process = start("print(json.dumps(sys.argv[1:]))", extra=("--accept-loss", "5"))
    assert process.wait() == 0
    text = json.loads(process.log_text())
    assert text[0] == sys.executable
    assert Path(text[1]).name == "strandline"
    assert text[2:] == [
        *("shard", "3", "--config", str(tmp_path / "settings.toml")),
        *("--accept-loss", "5", "--status-file", str(tmp_path / "shard-3.json")),
    ]


def test_its_status_is_the_one_that_it_wrote_last(start: Start) -> None:
    process = start("write_status(phase='acquiring')\nwrite_status(phase='active', keys=7)")
    process.wait()
    assert process.status() == {"phase": "active", "keys": 7}


def test_the_status_of_a_previous_process_is_ignored(start: Start, tmp_path: Path) -> None:
    (tmp_path / "shard-3.json").write_text('{"phase": "active"}', encoding="utf-8")
    process = start("while True: signal.pause()")
    assert process.status() == {}


def test_waiting_ends_with_the_status_that_meets_the_condition(start: Start) -> None:
    process = start(f"write_status(phase='acquiring'){WAITS}")
    assert process.wait_for("it is active", is_active) == {"phase": "active"}


def test_a_process_that_ended_is_reported_with_its_code_and_the_end_of_its_log(start: Start) -> None:
    process = start("for line in range(40): print('line', line)\nwrite_status(phase='failed')\nsys.exit(4)")
    with pytest.raises(CommandEnded) as caught:
        process.wait_for("it is active", is_active)
    assert caught.value.message == (
        f"strandline shard (process {process.pid}) ended with exit code 4 before it is active"
    )
    assert caught.value.remedy.splitlines() == ["The end of its log:", *(f"line {line}" for line in range(25, 40))]


def test_its_standard_error_is_in_its_log(start: Start) -> None:
    process = start("sys.exit('no such topic')")
    with pytest.raises(CommandEnded, match=r"exit code 1 before it is active\. The end of its log:\nno such topic"):
        process.wait_for("it is active", is_active)


def test_a_process_that_times_out_is_reported_with_its_status(start: Start) -> None:
    process = start("write_status(phase='replaying')\nprint('still here', flush=True)\nwhile True: signal.pause()")
    process.wait_for("it replays", lambda one: one["phase"] == "replaying")
    assert wait_until(lambda: "still here" in process.log_text(), timeout=60, clock=SystemClock())
    process._clock = ManualClock()
    reason = 'has not reached the condition "it is active" within 5 s; it is replaying'
    with pytest.raises(CommandEnded, match=reason) as caught:
        process.wait_for("it is active", is_active, timeout=5)
    assert "still here" in caught.value.remedy


def test_the_last_status_counts_even_after_it_has_ended(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    process = start("write_status(phase='active')")
    process.wait()
    assert process.wait_for("it is active", is_active) == {"phase": "active"}
    # Written between reading its status and checking its process.
    statuses = iter([{}, {"phase": "active"}])
    monkeypatch.setattr(process, "status", lambda: next(statuses))
    assert process.wait_for("it is active", is_active) == {"phase": "active"}


def test_a_condition_that_was_met_once_is_enough(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    process = start(WAITS)
    statuses = iter([{"phase": "active"}, {"phase": "fenced"}])
    monkeypatch.setattr(process, "status", lambda: next(statuses))
    assert process.wait_for("it is active", is_active) == {"phase": "active"}


ENDS = """
def end(number, _):
    write_status(phase='stopped', signal=number)
    sys.exit(0)
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, end)
"""


def test_it_handles_a_signal_itself(start: Start) -> None:
    for end, number in (
        (ShardProcess.terminate, signal.SIGTERM),
        (ShardProcess.end, signal.SIGTERM),
        (lambda process: process.send(signal.SIGINT), signal.SIGINT),
    ):
        process = start(ENDS + WAITS)
        process.wait_for("it is active", is_active)
        end(process)
        assert process.wait() == 0
        assert process.status() == {"phase": "stopped", "signal": number}


def test_a_kill_ends_it_at_once_and_may_be_repeated(start: Start) -> None:
    process = start(ENDS + WAITS)
    process.wait_for("it is active", is_active)
    process.kill()
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert process.status() == {"phase": "active"}


def state_of(process: ShardProcess) -> str:
    return Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]


def test_it_makes_no_progress_while_it_is_suspended_and_continues_afterwards(start: Start) -> None:
    process = start(ENDS + WAITS)
    process.wait_for("it is active", is_active)

    @process.suspended()
    def fail_while_held() -> None:
        assert wait_until(lambda: state_of(process) == "T", timeout=60, clock=SystemClock(), poll=0.001)
        raise KeyError

    with pytest.raises(KeyError):
        fail_while_held()
    assert wait_until(lambda: state_of(process) != "T", timeout=60, clock=SystemClock(), poll=0.001)
    assert process.terminate() == 0


def test_the_log_is_appended_to_the_previous_one(start: Start) -> None:
    for word in ("first", "second"):
        process = start(f"print('{word}')")
        process.wait()
    assert process.log_text().split() == ["first", "second"]


def test_settings_are_read_back_from_the_file_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / 'a "quoted" \\ näme 😀'
    folder.mkdir()
    path = write_settings(
        tmp_path / "settings.toml",
        {
            "kafka": {"bootstrap_servers": ["localhost:9092", "localhost:9093"]},
            "cassandra": {"port": 9043, "tls": False},
            "dataset": {"name": "bench", "flush_interval": "15m", "grace": "0s", "groups": 4, "retention": "6h"},
            "shard": {"data_dir": str(folder), "flush_spread": 0.25, "series_limit": 20_000_000},
        },
    )
    settings = load_settings(path, {})
    assert settings.kafka.bootstrap_servers == ("localhost:9092", "localhost:9093")
    assert (settings.cassandra.port, settings.cassandra.tls) == (9043, False)
    assert (settings.dataset.name, settings.dataset.groups) == ("bench", 4)
    assert (settings.dataset.flush_interval.milliseconds, settings.dataset.grace.milliseconds) == (900_000, 0)
    assert settings.shard.data_folder({}) == folder
    assert (settings.shard.flush_spread, settings.shard.series_limit) == (0.25, 20_000_000)


@pytest.mark.parametrize("text", ["", "a\nb\tc", 'say "yes"', "back\\slash", "é€😀", "= [x] #"])
def test_any_text_is_read_back_from_a_settings_file_unchanged(tmp_path: Path, text: str) -> None:
    path = write_settings(tmp_path / "settings.toml", {"one": {"text": text}, "two": {"texts": [text, "b"]}})
    assert tomllib.loads(path.read_text(encoding="utf-8")) == {"one": {"text": text}, "two": {"texts": [text, "b"]}}
