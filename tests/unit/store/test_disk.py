"""Disks that are full, and that have space again."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from strandline import disk
from strandline.disk import MIN_FREE_BYTES, DiskFull, is_nearly_full, raising_disk_full

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_a_retryable_error_that_names_the_path(number: int) -> None:
    with (
        pytest.raises(DiskFull, match=r"the disk of /data is full\. Free space") as full,
        raising_disk_full(Path("/data")),
    ):
        raise OSError(number, os.strerror(number))
    assert full.value.transient
    assert full.value.details() == {"full_disk": "/data"}


def test_other_errors_are_not_translated() -> None:
    with pytest.raises(PermissionError), raising_disk_full(Path("/data")):
        raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize(
    ("free_bytes", "files", "free_files", "full"),
    [
        (MIN_FREE_BYTES - 4096, 100, 50, True),
        (MIN_FREE_BYTES, 100, 50, False),
        (MIN_FREE_BYTES, 100, 0, True),
        (MIN_FREE_BYTES, 0, 0, False),
    ],
)
def test_a_disk_lacks_room_without_bytes_or_files(
    monkeypatch: pytest.MonkeyPatch, free_bytes: int, files: int, free_files: int, full: bool
) -> None:
    found = SimpleNamespace(f_bavail=free_bytes // 4096, f_frsize=4096, f_files=files, f_favail=free_files)
    monkeypatch.setattr(disk.os, "statvfs", lambda _: found)
    assert is_nearly_full(Path("/data")) is full


def test_a_missing_folder_is_on_the_disk_of_its_nearest_parent(tmp_path: Path) -> None:
    assert is_nearly_full(tmp_path / "not" / "there") is is_nearly_full(tmp_path)
