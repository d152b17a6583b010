"""`strandline stack`, where no server is needed."""

import json
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.errors import ExitCode
from strandline.node.cli.main import main
from strandline.node.stack.logs import follow
from strandline.node.stack.reports import FollowedLog
from strandline.node.stack.stack import Stack
from strandline.node.stack.state import StateFolder
from support.stack import StandIns, options

pytestmark = pytest.mark.unit


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    monkeypatch.setenv("STRANDLINE_STACK__STATE_DIR", str(tmp_path / "state"))
    return StateFolder(tmp_path / "state")


def test_status_without_a_stack_fails(folder: StateFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stack", "status", "--output", "json"]) == ExitCode.FAILED

    document = json.loads(capsys.readouterr().out)
    assert (document["healthy"], document["state"], document["state_dir"]) == (False, "down", str(folder.root))


def test_down_without_a_stack_is_fine(folder: StateFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stack", "down"]) == ExitCode.OK

    assert f"No stack was running in {folder.root}." in capsys.readouterr().out


def test_wipe_needs_confirmation(folder: StateFolder, capsys: pytest.CaptureFixture[str]) -> None:
    with Stack.start(options(folder.root), build=StandIns()):
        pass

    assert main(["stack", "down", "--wipe"]) == ExitCode.USAGE
    assert folder.record_file.exists()
    assert "Add --yes" in capsys.readouterr().err

    assert main(["stack", "down", "--wipe", "--yes", "--output", "json"]) == ExitCode.OK
    assert not folder.root.exists()
    assert str(folder.record_file) in json.loads(capsys.readouterr().out)["removed"]


def test_logs_show_the_end_of_both(folder: StateFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.log("kafka").parent.mkdir(parents=True)
    folder.log("kafka").write_text("one\ntwo\nthree\n", encoding="utf-8")
    folder.log("cassandra").write_text("[four]\n", encoding="utf-8")

    assert main(["stack", "logs", "-n", "2"]) == ExitCode.OK

    assert capsys.readouterr().out.splitlines() == [
        f"==> {folder.log('kafka')} <==",
        "two",
        "three",
        f"==> {folder.log('cassandra')} <==",
        "[four]",
    ]


def test_logs_of_one_server_as_json(folder: StateFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.log("kafka").parent.mkdir(parents=True)
    folder.log("kafka").write_text("one\n", encoding="utf-8")

    assert main(["stack", "logs", "kafka", "--output", "json"]) == ExitCode.OK

    assert json.loads(capsys.readouterr().out) == {"logs": [{"path": str(folder.log("kafka")), "lines": ["one"]}]}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("arguments", [["--follow"], ["kafka", "--follow", "--output", "json"]])
def test_following_needs_one_log_and_text_output(arguments: list[str]) -> None:
    assert main(["stack", "logs", *arguments]) == ExitCode.USAGE


def test_followed_log_is_shown_line_by_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\n", encoding="utf-8")

    report = FollowedLog(log, follow(log, 1, stop=lambda: True, clock=ManualClock()))

    assert list(report.blocks()) == ["two"]


def test_up_shows_the_addresses_of_a_stack_that_is_up_already(
    folder: StateFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    with Stack.start(options(folder.root), build=StandIns()) as stack:
        assert main(["stack", "up", "--output", "json"]) == ExitCode.OK

    document = json.loads(capsys.readouterr().out)
    assert document == {
        "started": False,
        "kafka": stack.kafka_bootstrap,
        "cassandra": f"{stack.cassandra_host}:{stack.cassandra_port}",
        "state_dir": str(folder.root),
    }
