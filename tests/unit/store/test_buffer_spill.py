import errno
import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.disk import DiskFull
from strandline.errors import Fatal
from strandline.store.buffer.spill import SpillDamaged, SpillFailed, SpillFolder, SpillFull

pytestmark = pytest.mark.unit


@pytest.fixture
def folder(tmp_path: Path) -> SpillFolder:
    folder = SpillFolder(tmp_path / "below" / "spill", 1000)
    folder.clear()
    return folder


def files(folder: SpillFolder) -> list[Path]:
    return sorted(folder.path.iterdir())


def test_a_page_is_decoded_as_it_was_encoded(folder: SpillFolder) -> None:
    page = folder.write(b"some bytes", 12, 3)
    assert page.load() == b"some bytes"
    assert folder.used == page.length == 10
    assert files(folder) == [page.path]


def test_a_start_removes_what_an_earlier_process_left_and_nothing_else(folder: SpillFolder) -> None:
    (folder.path / "12-3-0.page").write_bytes(b"left over")
    (folder.path / "notes.txt").write_text("another program's")
    assert folder.clear() == 1
    assert [path.name for path in files(folder)] == ["notes.txt"]


def test_a_file_is_deleted_with_the_last_reference_to_its_page(folder: SpillFolder) -> None:
    page = folder.write(b"x" * 600, 1, 1)
    second_reference = page
    del page
    gc.collect()
    assert second_reference.load() == b"x" * 600
    del second_reference
    gc.collect()
    assert files(folder) == []
    assert folder.used == 0
    assert folder.write(b"y" * 1000, 1, 1).length == 1000


def test_a_full_folder_rejects_a_page_with_a_remedy(folder: SpillFolder) -> None:
    kept = folder.write(b"x" * 600, 1, 1)
    with pytest.raises(SpillFull, match="has 600 of 1000 bytes in use: no space for a page of 401") as refused:
        folder.write(b"y" * 401, 1, 2)
    assert isinstance(refused.value, Fatal)
    assert "Kafka has the samples" in refused.value.remedy
    assert files(folder) == [kept.path]
    assert folder.used == 600
    assert folder.write(b"y" * 400, 1, 2).length == 400, "exactly up to the limit"


def test_pages_that_only_garbage_refers_to_make_no_folder_full(folder: SpillFolder) -> None:
    gc.collect()
    gc.disable()
    try:
        cycle: list[object] = [folder.write(b"x" * 600, 1, 1)]
        cycle.append(cycle)
        del cycle
        assert folder.used == 600
        assert folder.write(b"y" * 600, 1, 2).length == 600
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EIO, SpillFailed)]
)
def test_a_disk_that_refuses_a_page_keeps_nothing_of_it(
    folder: SpillFolder, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Fatal]
) -> None:
    def half(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:5])
        raise OSError(number, "refused by the disk")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(error, match=str(folder.path)) as refused:
        folder.write(b"some bytes", 1, 1)
    # While the caller still holds the error, and with it the frames of its traceback.
    assert refused.value.__traceback__ is not None
    assert files(folder) == []
    assert folder.used == 0


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpillFailed, match="file/spill"):
        SpillFolder(tmp_path / "file" / "spill", 1000).clear()


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(data)


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


@pytest.mark.parametrize("damage", [flip, shorten, lengthen, Path.unlink])
def test_a_damaged_page_is_named_and_never_returned(folder: SpillFolder, damage: Callable[[Path], None]) -> None:
    page = folder.write(b"some bytes", 12, 3)
    damage(page.path)
    with pytest.raises(SpillDamaged, match=page.path.name) as damaged:
        page.load()
    assert isinstance(damaged.value, Fatal)
    assert "Kafka" in damaged.value.remedy
