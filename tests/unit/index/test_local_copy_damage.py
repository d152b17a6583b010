"""A local copy that is damaged, in use or incompletely saved is never used."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

from strandline.index.local_copy import discard_copy, lucene_folder, open_copy, saved_identity
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.failures import IndexInUse
from strandline.index.vm import start_vm
from support.shard_with_copy import FIRST, POLICY, Shard, files_of, identity, opened, refused

pytestmark = pytest.mark.unit


KEPT = dict(enumerate("bcdefghij", start=1))


@pytest.fixture(scope="module")
def made_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with several segments, one of them with deleted documents. Tests take a copy of it."""
    start_vm()
    shard = Shard(tmp_path_factory.mktemp("made") / "copy")
    shard.take("purged", late=3)
    shard.take(*"bcdefghi")  # Enough that Lucene does not rewrite the segment when one is deleted.
    shard.pass_an_hour()
    shard.take("j")
    shard.pass_an_hour()
    shard.lucene.close()
    assert any(path.suffix == ".liv" for path in files_of(shard.folder))
    return shard.folder


@pytest.fixture
def closed_copy(made_copy: Path, tmp_path: Path) -> Path:
    """The same, in a separate folder, not open."""
    return Path(shutil.copytree(made_copy, tmp_path / "closed"))


def test_a_changed_byte_in_any_file_is_found(closed_copy: Path) -> None:
    files = files_of(closed_copy)
    for path in files:
        content = path.read_bytes()
        offsets = {*range(0, len(content), max(1, len(content) // 8)), len(content) - 1, len(content) - 12}
        for offset, change in zip(sorted(offsets), cycle((0x01, 0xFF))):
            damaged = bytearray(content)
            damaged[offset] ^= change
            path.write_bytes(damaged)
            assert refused(closed_copy, identity(FIRST + 1)), (path, offset)
        path.write_bytes(content)
    assert files_of(closed_copy) == files
    assert opened(closed_copy, identity(FIRST + 1)) == KEPT


DAMAGES: dict[str, Callable[[Path, bytes], object]] = {
    "missing": lambda path, _: path.unlink(),
    "empty": lambda path, _: path.write_bytes(b""),
    "a byte short": lambda path, content: path.write_bytes(content[:-1]),
    "cut in half": lambda path, content: path.write_bytes(content[: len(content) // 2]),
    "a byte longer": lambda path, content: path.write_bytes(content + b"\0"),
    "twice": lambda path, content: path.write_bytes(content + content),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_file_that_is_missing_or_of_another_length_is_found(
    closed_copy: Path, damage: Callable[[Path, bytes], object]
) -> None:
    for path in files_of(closed_copy):
        content = path.read_bytes()
        damage(path, content)
        assert refused(closed_copy, identity(FIRST + 1)), path
        path.write_bytes(content)
    assert opened(closed_copy, identity(FIRST + 1)) == KEPT


def test_a_file_replaced_with_that_of_an_older_copy_is_found(shard: Shard, tmp_path: Path) -> None:
    other = Shard(tmp_path / "other")
    for changed in (shard, other):
        changed.take("a")
        changed.pass_an_hour()
        changed.lucene.close()
    for path in files_of(lucene_folder(shard.folder)):
        content = path.read_bytes()
        path.write_bytes((lucene_folder(other.folder) / path.name).read_bytes())
        if path.read_bytes() != content:
            assert refused(shard.folder), path
        path.write_bytes(content)


def test_files_that_the_commit_does_not_reference_are_ignored_and_removed(closed_copy: Path) -> None:
    belonging = files_of(closed_copy)
    segment_file = next(path for path in belonging if path.suffix == ".fnm")
    leftovers = [
        lucene_folder(closed_copy) / "_9.fnm",
        lucene_folder(closed_copy) / "pending_segments_9",
        closed_copy / "columns-999-0123",
        closed_copy / "columns-1002-4567.unfinished",
    ]
    for path in leftovers:
        path.write_bytes(segment_file.read_bytes()[:20])
    assert opened(closed_copy, identity(FIRST + 1)) == KEPT
    assert files_of(closed_copy) == belonging


def test_a_copy_that_is_open_here_is_neither_opened_nor_discarded(shard: Shard) -> None:
    shard.take("a")
    shard.pass_an_hour()
    with pytest.raises(IndexInUse):
        open_copy(shard.folder, identity(), POLICY.retention)
    with pytest.raises(IndexInUse):
        saved_identity(shard.folder)
    with pytest.raises(IndexInUse):
        discard_copy(shard.folder)
    assert shard.documents() == {0: "a"}


HOLDER = """
import fcntl, sys
with open(sys.argv[1], "r+") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_copy_that_another_process_has_open_is_neither_opened_nor_discarded(closed_copy: Path) -> None:
    before = files_of(closed_copy)
    lock = lucene_folder(closed_copy) / "write.lock"
    command = [sys.executable, "-c", HOLDER, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(IndexInUse):
            open_copy(closed_copy, identity(FIRST + 1), POLICY.retention)
        with pytest.raises(IndexInUse):
            discard_copy(closed_copy)
        holder.stdin.close()
    assert files_of(closed_copy) == before
    assert opened(closed_copy, identity(FIRST + 1)) == KEPT


def test_a_discarded_copy_is_deleted_and_another_can_be_built_in_its_place(shard: Shard) -> None:
    shard.take("a")
    shard.pass_an_hour()
    shard.lucene.close()
    next(lucene_folder(shard.folder).glob("segments_*")).write_bytes(b"damaged")
    discard_copy(shard.folder)
    discard_copy(shard.folder)
    assert files_of(shard.folder) == []
    assert refused(shard.folder) == "there is none"
    again = Shard(shard.folder)
    again.take("b")
    again.pass_an_hour()
    again.lucene.close()
    assert opened(shard.folder, identity()) == {0: "b"}


# The columns, their name, their folder; then the switch; then what is no longer needed.
STEPS = ("fsync", "replace", "fsync", "commit", "unlink")


class Images:
    """Copies of a folder, as a crash would leave it, before and after each step of a save."""

    def __init__(self, folder: Path, to: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.to = folder, to
        self.taken: list[tuple[str, Path, bool]] = []
        self.committed = False
        for owner, name in ((os, "fsync"), (Path, "replace"), (Path, "unlink"), (PartKeyIndex, "commit")):
            patch.setattr(owner, name, self.pictured(name, getattr(owner, name)))

    def pictured(self, name: str, step: Callable[..., object]) -> Callable[..., object]:
        def with_pictures(*arguments: object) -> object:
            self.take(f"before {name}")
            result = step(*arguments)
            self.committed |= name == "commit"
            self.take(f"after {name}")
            return result

        return with_pictures

    def take(self, what: str) -> None:
        image = self.to / str(len(self.taken))
        shutil.copytree(self.folder, image, ignore=shutil.ignore_patterns("write.lock"))
        self.taken.append((what, image, self.committed))


def test_a_save_that_is_interrupted_leaves_the_copy_before_or_the_new_one(shard: Shard, tmp_path: Path) -> None:
    shard.take("a")
    shard.pass_an_hour()
    shard.take("b")
    frozen, snapshot = shard.cut()
    shard.take("young")
    shard.store(frozen)
    with pytest.MonkeyPatch.context() as patch:
        images = Images(shard.folder, tmp_path / "images", patch)
        shard.save(snapshot)
    steps = [what for what, _, _ in images.taken]
    assert steps == [f"{when} {step}" for step in STEPS for when in ("before", "after")]
    for _, image, committed in images.taken:
        old, new = identity(FIRST), identity(FIRST + 1)
        if committed:
            assert "was expected" in refused(image, old)
            assert opened(image, new) == {0: "a", 1: "b"}
        else:
            assert "was expected" in refused(image, new)
            assert opened(image, old) == {0: "a"}


@pytest.mark.parametrize("renamed", [False, True])
def test_a_crash_inside_of_lucenes_own_commit_leaves_one_of_the_two(
    shard: Shard, tmp_path: Path, renamed: bool
) -> None:
    shard.take("a")
    shard.pass_an_hour()
    before = tmp_path / "before"
    shutil.copytree(shard.folder, before, ignore=shutil.ignore_patterns("write.lock"))
    shard.take("b")
    shard.pass_an_hour()
    shard.lucene.close()
    # Lucene writes its new files, then their list under a temporary name, and renames the list.
    for path in files_of(shard.folder):
        target = before / path.relative_to(shard.folder)
        if not target.exists():
            new_list = path.name.startswith("segments_") and not renamed
            shutil.copy(path, target.with_name(f"pending_{path.name}") if new_list else target)
    assert len(list(before.rglob("*segments_*"))) == 2
    bucket, documents = (FIRST + 1, {0: "a", 1: "b"}) if renamed else (FIRST, {0: "a"})
    assert saved_identity(before) == identity(bucket)
    assert opened(before, identity(bucket)) == documents
    assert len(list(before.rglob("*segments_*"))) == 1
