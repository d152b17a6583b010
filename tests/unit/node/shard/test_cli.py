"""`strandline shard`, without servers."""

import json
import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from strandline.clock import Clock
from strandline.errors import ExitCode
from strandline.node.cli import shard as module
from strandline.node.cli.exit_codes import EXIT_CODES
from strandline.node.cli.main import main
from strandline.node.replay.service import WorkerProcess
from strandline.node.settings import load
from strandline.node.settings.sections import Settings
from strandline.node.shard.index_storage import MemoryStorage
from strandline.node.shard.ownership import take_shard
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.replaying import ReplayService
from support.shard_world import StoreCall, World, produce_everywhere

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Isolate from this machine's settings, and restore logging and signals afterwards."""
    monkeypatch.setattr(load, "DEFAULT_FILE", tmp_path / "none.toml")
    for name in [name for name in os.environ if name.startswith("STRANDLINE_")]:
        monkeypatch.delenv(name)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    handled = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in handled.items():
        signal.signal(number, handler)
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


class SignallingStorage(MemoryStorage):
    """Sends this process a signal as soon as the shard reads, if one is set."""

    number: signal.Signals | None = None

    def refresh(self, *, changed: bool, may_merge: bool = False) -> None:
        del changed, may_merge
        number, self.number = self.number, None
        if number is not None:
            os.kill(os.getpid(), number)


class FakeAssembly:
    """Parts in memory instead of the real ones."""

    def __init__(self, world: World) -> None:
        self.world, self.index_storage = world, SignallingStorage()
        self.calls: list[tuple[Settings, int]] = []
        self.heap_is_limited = False

    def limit_heap(self) -> None:
        self.heap_is_limited = True

    @contextmanager
    def __call__(
        self, settings: Settings, shard: int, environment: Mapping[str, str], clock: Clock, *, replays: ReplayService
    ) -> Iterator[ShardParts]:
        assert isinstance(replays, WorkerProcess)
        assert environment is os.environ
        assert clock.now_ms() > 0
        assert self.heap_is_limited, "the heap must be limited before threads start"
        self.calls.append((settings, shard))
        yield self.world.parts(self.index_storage)


@pytest.fixture
def parts(world: World, monkeypatch: pytest.MonkeyPatch) -> FakeAssembly:
    assembled = FakeAssembly(world)
    monkeypatch.setattr(module, "assembled", assembled)
    monkeypatch.setattr(module, "limit_arenas", assembled.limit_heap)
    return assembled


def error_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(capsys.readouterr().out)["error"]
    return error


def test_the_help_explains_each_exit_code_of_a_shard(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shard", "--help"]) == ExitCode.OK
    help_text = capsys.readouterr().out
    for code in (ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.DATA_LOST, ExitCode.FENCED):
        assert f"    {code.value:<4}{EXIT_CODES[code]}\n" in help_text
    assert EXIT_CODES[ExitCode.INTERRUPTED] not in help_text, "Ctrl-C ends a shard with exit code 0"
    for option in ("--status-file", "--accept-loss", "--accept-new-topic"):
        assert option in help_text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'SHARD'"),
        (["zero"], "Invalid value for 'SHARD': 'zero' is not a valid integer range"),
        (["--", "-1"], "Invalid value for 'SHARD': -1 is not in the range x>=0"),
        (["0", "1"], "Got unexpected extra argument (1)"),
        (["0", "--accept-loss", "-1"], "Invalid value for '--accept-loss': -1 is not in the range x>=0"),
        (["0", "--status-file", "."], "Invalid value for '--status-file': File '.' is a directory"),
    ],
)
def test_an_invalid_command_line_starts_no_shard(
    arguments: list[str], message: str, parts: FakeAssembly, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["shard", *arguments]) == ExitCode.USAGE
    assert capsys.readouterr().err == f"error: {message}\n  See `strandline shard --help`\n"
    assert parts.calls == []


def test_invalid_settings_start_no_shard(
    parts: FakeAssembly, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRANDLINE_DATASET__GROUPS", "many")
    assert main(["shard", "0", "--output", "json"]) == ExitCode.USAGE
    error = error_of(capsys)
    assert (error["type"], error["exit_code"]) == ("SettingsError", 2)
    assert [problem["setting"] for problem in error["problems"]] == ["dataset.groups"]
    assert parts.calls == []


def test_a_missing_settings_file_starts_no_shard(
    parts: FakeAssembly, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["shard", "0", "--config", str(tmp_path / "gone.toml")]) == ExitCode.USAGE
    assert "gone.toml" in capsys.readouterr().err
    assert parts.calls == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_shard_with_exit_code_0(
    world: World, parts: FakeAssembly, number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    parts.index_storage.number = number
    assert main(["shard", "7"]) == ExitCode.OK
    ((settings, shard),) = parts.calls
    assert shard == 7
    assert settings.dataset.name == "metrics"
    state = world.sqlite.state(world.options.shard)
    assert state is not None
    assert state.seen_at is None, "the shard was released"
    assert capsys.readouterr().out == ""


def test_the_status_file_has_the_final_status(world: World, parts: FakeAssembly, tmp_path: Path) -> None:
    produce_everywhere(world)
    parts.index_storage.number = signal.SIGTERM
    path = tmp_path / "status.json"
    assert main(["shard", "0", "--status-file", str(path)]) == ExitCode.OK
    status = json.loads(path.read_text(encoding="utf-8"))
    assert (status["phase"], status["counters"]["records"]) == ("stopped", 1)


@pytest.mark.usefixtures("parts")
def test_an_unwritable_status_file_is_reported_with_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gone" / "status.json"
    assert main(["shard", "0", "--status-file", str(path), "--output", "json"]) == ExitCode.FAILED
    error = error_of(capsys)
    assert error["type"] == "StatusFileUnwritable"
    assert str(path) in error["message"]


@pytest.mark.usefixtures("parts")
def test_a_shard_that_was_taken_over_ends_with_its_own_exit_code(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def overtake(call: StoreCall) -> None:
        if call.name == "manifest":
            take_shard(world.sqlite, world.options.shard, "topic-1", world.clock, by_force=True)

    world.store.before = overtake
    path = tmp_path / "status.json"
    assert main(["shard", "0", "--status-file", str(path), "--output", "json"]) == ExitCode.FENCED
    error = error_of(capsys)
    assert (error["type"], error["exit_code"]) == ("ShardFenced", 5)
    assert "shard metrics/0 belongs to another owner now" in error["message"]
    assert json.loads(path.read_text(encoding="utf-8"))["phase"] == "fenced"


def lose_records(world: World) -> None:
    """Two records that were not stored, the first of which Kafka has deleted."""
    world.start()
    world.crash()
    produce_everywhere(world, "1")
    produce_everywhere(world, "2")
    world.log.delete_before(1)


def recreate_topic(world: World) -> None:
    world.start()
    world.crash()
    world.log.recreate()


@pytest.mark.parametrize(
    ("prepare", "code", "option"),
    [
        (lose_records, ExitCode.DATA_LOST, ["--accept-loss", "1"]),
        (recreate_topic, ExitCode.FAILED, ["--accept-new-topic"]),
    ],
)
def test_a_loss_is_refused_until_an_operator_accepts_it(
    prepare: Callable[[World], None], code: ExitCode, option: list[str], world: World, parts: FakeAssembly
) -> None:
    prepare(world)
    parts.index_storage.number = signal.SIGTERM
    assert main(["shard", "0"]) == code
    assert parts.index_storage.number is not None, "it did not start to read"
    assert main(["shard", "0", *option]) == ExitCode.OK
    assert parts.index_storage.number is None


@pytest.mark.usefixtures("parts")
def test_accepting_one_kind_of_loss_does_not_accept_the_other(world: World) -> None:
    lose_records(world)
    assert main(["shard", "0", "--accept-new-topic"]) == ExitCode.DATA_LOST
    world.log.recreate()
    assert main(["shard", "0", "--accept-loss", "1"]) == ExitCode.FAILED
