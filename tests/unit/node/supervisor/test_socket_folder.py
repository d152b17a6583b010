"""The folder of the shards' sockets: private, used by one node only, and always removed."""

import errno
import socket
import stat
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from strandline.clock import ManualClock
from strandline.disk import DiskFull
from strandline.node.supervisor import socket_folder as socket_folder_module
from strandline.node.supervisor.socket_folder import (
    SocketFolderUnusable,
    awaited_socket_folder,
    socket_folder,
    socket_path,
)

pytestmark = pytest.mark.unit


@pytest.fixture
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Short, because the path of a socket has at most 107 bytes.
    return tmp_path_factory.mktemp("s")


def leave_a_socket(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(socket_path(folder, 3)))


def test_it_is_private_to_its_user_and_removed_with_the_node(base: Path) -> None:
    with socket_folder({}, base) as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        leave_a_socket(folder)
    assert not folder.exists()


def test_under_systemd_it_is_in_the_runtime_directory(base: Path) -> None:
    with socket_folder({"RUNTIME_DIRECTORY": f"{base}:/run/other"}) as folder:
        assert folder == base / "shards"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()


def test_files_of_a_killed_node_in_the_runtime_directory_are_removed(base: Path) -> None:
    (base / "shards").mkdir(mode=0o755)
    leave_a_socket(base / "shards")
    with socket_folder({"RUNTIME_DIRECTORY": str(base)}) as folder:
        assert not socket_path(folder, 3).exists()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_temporary_files_of_a_killed_node_are_removed_and_those_of_a_running_one_are_not(base: Path) -> None:
    dead = base / "strandline-node-dead"
    dead.mkdir()
    (dead / "lock").touch()
    leave_a_socket(dead)
    with socket_folder({}, base) as first, socket_folder({}, base) as second:
        assert not dead.exists()
        assert first != second
        assert first.exists()


def test_a_second_node_in_one_runtime_directory_is_refused(base: Path) -> None:
    environ = {"RUNTIME_DIRECTORY": str(base)}
    with (
        socket_folder(environ) as folder,
        pytest.raises(SocketFolderUnusable, match="another node has its sockets in"),
        socket_folder(environ),
    ):
        pass
    assert not folder.exists()


@pytest.mark.parametrize("variable", ["RUNTIME_DIRECTORY", "unset"])
def test_a_path_that_is_too_long_for_a_socket_is_refused(base: Path, variable: str) -> None:
    long = base / ("x" * 100)
    long.mkdir()
    with pytest.raises(SocketFolderUnusable, match="too long"), socket_folder({variable: str(long)}, long):
        pass


def test_a_missing_parent_folder_is_reported_with_a_remedy(base: Path) -> None:
    missing = base / "missing"
    with pytest.raises(SocketFolderUnusable, match="No such file") as raised, socket_folder({}, missing):
        pass
    assert "TMPDIR" in raised.value.remedy


def test_a_full_disk_is_waited_out(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, real = ManualClock(), socket_folder_module._temporary_folder

    def made(folder: Path) -> Path:
        if clock.monotonic() < 3600:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(folder)

    monkeypatch.setattr(socket_folder_module, "_temporary_folder", made)
    with pytest.raises(DiskFull, match=f"the disk of {base} is full"), socket_folder({}, base):
        pass
    with capture_logs() as logged, awaited_socket_folder({}, clock, base) as folder:
        assert folder.is_dir()
    assert len(logged) == 60, "it is logged once a minute"
    assert f"the disk of {base} is full. Free space on it" in logged[0]["error"]
