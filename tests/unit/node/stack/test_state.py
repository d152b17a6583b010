"""The state folder: one stack at a time, atomic records, and a wipe that removes only its own files."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.node.stack.errors import DiskTooFull, StackBusy, StateFolderUnusable
from strandline.node.stack.ports import Ports
from strandline.node.stack.process import ProcessIdentity
from strandline.node.stack.record import ServerRecord, StackRecord, StackState
from strandline.node.stack.state import StateFolder
from support.stack import STACK_TIMEOUT, eventually

pytestmark = pytest.mark.unit

RECORD = StackRecord(
    state=StackState.UP,
    keeper=ProcessIdentity(812, 12345),
    started_at_ms=1_700_000_000_000,
    ports=Ports(1, 2, 3, 4),
    servers=(
        ServerRecord("kafka", ProcessIdentity(813, 12346), "4.3.1", "/logs/kafka.log"),
        ServerRecord("cassandra", None, "5.0.9", "/logs/cassandra.log"),
    ),
    failure="",
)

HOLDER = """
import signal, sys
from pathlib import Path
from strandline.node.stack.state import StateFolder
with StateFolder(Path(sys.argv[1])).lock():
    print("held", flush=True)
    signal.pause()
"""


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    state = StateFolder(tmp_path / "state")
    state.prepare()
    return state


def test_record_survives_a_round_trip(folder: StateFolder) -> None:
    folder.write(RECORD)

    assert folder.read() == RECORD


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"format": 1}',
        RECORD.to_json().replace('"format": 1', '"format": 2'),
        RECORD.to_json()[:-9],
    ],
)
def test_record_that_is_damaged_or_of_another_version_is_none(folder: StateFolder, text: str) -> None:
    folder.record_file.write_text(text, encoding="utf-8")

    assert folder.read() is None


def test_record_that_is_replaced_leaves_no_partial_file(folder: StateFolder) -> None:
    folder.write(RECORD)
    folder.write(replace(RECORD, state=StackState.DOWN))

    assert [path.name for path in folder.root.iterdir()] == ["stack.json"]


def test_folder_is_held_by_one_at_a_time(folder: StateFolder) -> None:
    with folder.lock():
        assert folder.is_held()
        with pytest.raises(StackBusy, match=str(folder.root)):
            folder.lock()
    assert not folder.is_held()
    with folder.lock():
        assert folder.is_held()


def test_reading_a_folder_creates_no_files(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")

    assert not folder.is_held()
    assert folder.read() is None
    assert not folder.root.exists()


def test_killed_holder_releases_the_lock(folder: StateFolder) -> None:
    command = [sys.executable, "-c", HOLDER, str(folder.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert folder.is_held()

        holder.send_signal(signal.SIGKILL)
        holder.wait(STACK_TIMEOUT)

    assert eventually(lambda: not folder.is_held())


def test_child_of_the_holder_has_no_share_in_the_lock(folder: StateFolder) -> None:
    lock = folder.lock()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False) as child:
        lock.release()
        # The kernel resumes the parent shortly before it closes the child's copies.
        assert eventually(lambda: not folder.is_held())
        assert child.poll() is None
        child.kill()


def test_lock_on_a_file_that_was_wiped_meanwhile_is_not_taken_for_the_folder(folder: StateFolder) -> None:
    with folder.lock():
        folder.lock_file.unlink()
        with folder.lock():
            assert folder.is_held()


@pytest.mark.parametrize("name", ["a,b", "a:b", 'a"b', "a$b", "a%b", "a\nb"])
def test_path_that_the_servers_can_not_take_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StateFolderUnusable, match="without these characters"):
        StateFolder(tmp_path / name).prepare()

    assert not list(tmp_path.iterdir())


def test_path_with_spaces_and_letters_of_any_language_is_taken(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "mon état (1)")

    folder.prepare()

    assert folder.root.is_dir()


def test_folder_that_can_not_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StateFolderUnusable, match=f"{tmp_path}/file/state can't be written"):
        StateFolder(tmp_path / "file" / "state").prepare()


def test_folder_with_foreign_data_under_our_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()

    with pytest.raises(StateFolderUnusable, match="contains logs, which was not created by a stack"):
        StateFolder(tmp_path).prepare()


def test_folder_is_for_its_owner_only(folder: StateFolder) -> None:
    assert folder.root.stat().st_mode & 0o777 == 0o700


def test_disk_with_too_little_space_is_refused(folder: StateFolder) -> None:
    with pytest.raises(
        DiskTooFull, match=r"MiB free, less than the 1099511627776 MiB that stack.min_free_disk requires"
    ):
        folder.require_free_disk(1 << 60)

    folder.require_free_disk(1)


def test_size_counts_blocks_on_disk(folder: StateFolder) -> None:
    data = folder.data("kafka") / "topic-0"
    data.mkdir(parents=True)
    (data / "sparse").touch()
    os.truncate(data / "sparse", 1 << 30)
    (data / "full").write_bytes(b"x" * 100_000)

    assert 100_000 <= folder.size("kafka") < 1 << 20


def test_wipe_removes_only_the_files_of_the_stack(folder: StateFolder) -> None:
    folder.write(RECORD)
    for name in ("kafka", "cassandra", "conf", "logs", "tmp"):
        (folder.root / name / "inside").mkdir(parents=True)
    folder.keeper_log.touch()
    (folder.root / "notes.txt").write_text("mine", encoding="utf-8")

    removed = folder.wipe()

    assert [path.name for path in folder.root.iterdir()] == ["notes.txt"]
    assert {path.name for path in removed} == {
        *("kafka", "cassandra", "conf", "logs", "tmp", "keeper.log", "stack.json", "lock")
    }


def test_wipe_removes_an_empty_folder(folder: StateFolder) -> None:
    folder.write(RECORD)

    folder.wipe()

    assert not folder.root.exists()


def test_wipe_does_not_touch_a_folder_that_no_stack_created(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()

    assert StateFolder(tmp_path).wipe() == []
    assert (tmp_path / "logs").is_dir()


def test_wipe_does_not_follow_links(folder: StateFolder, tmp_path: Path) -> None:
    folder.write(RECORD)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "data").touch()
    (folder.root / "cassandra").symlink_to(elsewhere)

    folder.wipe()

    assert (elsewhere / "data").exists()


def test_wipe_of_a_folder_in_use_is_refused(folder: StateFolder) -> None:
    folder.write(RECORD)

    with folder.lock(), pytest.raises(StackBusy):
        folder.wipe()

    assert folder.read() == RECORD
