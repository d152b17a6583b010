"""The local copy of a shard's index: what a restart on the same host begins with, in place of all stored buckets.

A folder holds `lucene/` and, beside it, the columns as of the cut that the copy belongs to. The last commit of Lucene
says in its user data whose copy it is, as of which bucket, and which file has the columns, with its checksum. So that
commit is the one switch: what it does not name is left over from something that was not finished, and is removed.

Damage is found by checksums: that of the columns in the commit, and those that Lucene itself ends each of its files
with. A list of Lucene's files with sums of our own could be written only behind the commit, and between the two there
would be a moment without a copy.

The commit comes later than the cut, and so Lucene holds more than the columns: keys that were born since, and keys that
were purged but not deleted yet. The columns are the truth about which keys there are.

A copy is used whole or not at all. All that it has lies in the store too, so that what can't be used is discarded and
built again from there.
"""

import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from pyroaring import BitMap

from strandline.digest import digest
from strandline.errors import Fatal
from strandline.index.bitmaps import to_bitmap
from strandline.index.cut_snapshot import CutSnapshot, UnknownSnapshot, decode_snapshot, encode_snapshot
from strandline.index.key_table import KeyTable
from strandline.index.part_key_index import DEFAULT_RAM_BUFFER_MB, PartKeyIndex
from strandline.index.pylucene.commits import LockedIndex, locked_index
from strandline.index.pylucene.failures import IndexDamaged, LuceneFailed
from strandline.index.pylucene.queries import everything

_COLUMNS, _DIGEST, _NEXT_PART_ID = "columns", "columns_xxh3", "next_part_id"
_COLUMNS_FILES: Final = "columns-*"
_UNFINISHED: Final = ".unfinished"


class CopyUnusable(Fatal):
    """There is no copy, it is another one than expected, or it is damaged; `reason` says which."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(
            f"the local copy of the index in {folder} can't be used: {reason}",
            remedy="Discard it and load the index from the store",
        )
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CopyIdentity:
    """Whose copy it is, and as of which bucket's cut; `attempt` is the one that the manifest names for the bucket."""

    dataset: str
    topic_id: str
    shard: int
    bucket: int
    attempt: str


def lucene_folder(folder: Path) -> Path:
    """Where the Lucene index of a copy lies: it has to be opened there for the copy to be saved."""
    return folder / "lucene"


def save_copy(folder: Path, index: PartKeyIndex, snapshot: CutSnapshot, identity: CopyIdentity) -> None:
    """Make the copy in a folder that of `identity`, whose bucket has to be in the manifest already.

    `index` is the one that is open in `lucene_folder(folder)`. It may go on growing meanwhile, but no later bucket may
    be said to be stored before this returns, since that deletes documents which the snapshot still counts on. Whenever
    it is interrupted, the copy before or the new one is there, whole.
    """
    if snapshot.bucket != identity.bucket:
        raise ValueError(f"a snapshot of bucket {snapshot.bucket} was to be saved as bucket {identity.bucket}")
    data = encode_snapshot(snapshot)
    checksum = f"{digest(data):032x}"
    # By what it holds: a file that a commit names is never replaced by another.
    name = f"columns-{snapshot.bucket}-{checksum}"
    _write_durably(folder / name, data)
    index.commit(
        {key: str(value) for key, value in asdict(identity).items()}
        | {_COLUMNS: name, _DIGEST: checksum, _NEXT_PART_ID: str(snapshot.next_part_id)}
    )
    _remove_other_columns(folder, name)


def saved_identity(folder: Path) -> CopyIdentity:
    """Whose copy lies in a folder, by its own word. Raises `CopyUnusable` where none says so."""
    _check_commit_exists(folder)
    with locked_index(lucene_folder(folder)) as closed:
        return _identity(folder, _user_data(folder, closed))


@dataclass(slots=True)
class OpenedCopy:
    """A copy whose bytes are all right, opened, before anybody knows whether it is the one that is wanted.

    Nothing of it is changed by that. It ends with `verified_as` or with `close`.
    """

    folder: Path
    identity: CopyIdentity
    snapshot: CutSnapshot
    table: KeyTable
    """Each key of the snapshot with its place in it."""
    index: PartKeyIndex
    found: BitMap
    """The part ids that have a document."""

    def verified_as(self, expected: CopyIdentity, retention: int) -> tuple[PartKeyIndex, CutSnapshot]:
        """The Lucene index and the columns as they were right after the cut of the expected bucket, for `load_index`.

        `expected` is what the manifest names for that bucket, and `retention` is today's. Raises `CopyUnusable` unless
        the copy is just that one; it is closed then.
        """
        try:
            self._check(expected, retention)
            self._keep_documents()
        except BaseException:
            self.close()
            raise
        return self.index, self.snapshot

    def close(self) -> None:
        """Let go of it."""
        self.index.close()

    def _check(self, expected: CopyIdentity, retention: int) -> None:
        if self.identity != expected:
            raise CopyUnusable(self.folder, f"it is {self.identity}, and {expected} was expected")
        kept = self.snapshot.retention
        if retention > kept:
            raise CopyUnusable(
                self.folder, f"it was purged by a retention of {kept} ms, and now {retention} ms are kept"
            )

    def _keep_documents(self) -> None:
        """Delete the documents of keys that were not there at the cut: those born since, and those purged before."""
        present = to_bitmap(self.snapshot.keys.part_id)
        if not present <= self.found:
            raise CopyUnusable(self.folder, f"{len(present - self.found)} of its {len(present)} keys have no document")
        if self.found != present:
            self.index.delete(self.found - present)
            self.index.refresh()


def open_saved(folder: Path, *, ram_buffer_mb: float = DEFAULT_RAM_BUFFER_MB) -> OpenedCopy:
    """The copy that lies in a folder, whosever it is. Raises `CopyUnusable` unless there is one and every byte of it is
    right, and `IndexInUse` if somebody has it open.
    """
    _check_commit_exists(folder)
    with locked_index(lucene_folder(folder)) as closed:
        user_data = _user_data(folder, closed)
        identity = _identity(folder, user_data)
        with ThreadPoolExecutor(1, thread_name_prefix="columns") as beside:
            reading = beside.submit(_read_keys, folder, user_data)
            if not closed.is_intact():
                raise CopyUnusable(folder, "a file of its Lucene index is missing or damaged")
            snapshot, table = reading.result()
    try:
        index = PartKeyIndex.open(lucene_folder(folder), ram_buffer_mb=ram_buffer_mb)
    except (IndexDamaged, LuceneFailed) as error:
        raise CopyUnusable(folder, error.message) from error
    try:
        if index.user_data() != user_data:
            raise CopyUnusable(folder, "it was changed while it was being opened")
        found = index.search(everything())
        if index.count() != len(found):
            raise CopyUnusable(folder, f"it has {index.count()} documents for {len(found)} part ids")
        _remove_other_columns(folder, user_data[_COLUMNS])
    except BaseException:
        index.close()
        raise
    return OpenedCopy(folder, identity, snapshot, table, index, found)


def open_copy(
    folder: Path,
    expected: CopyIdentity,
    retention: int,
    *,
    ram_buffer_mb: float = DEFAULT_RAM_BUFFER_MB,
) -> tuple[PartKeyIndex, CutSnapshot]:
    """The copy in a folder, if it is the expected one: `open_saved`, and `verified_as` at once."""
    found = saved_identity(folder)
    if found != expected:
        raise CopyUnusable(folder, f"it is {found}, and {expected} was expected")
    return open_saved(folder, ram_buffer_mb=ram_buffer_mb).verified_as(expected, retention)


def discard_copy(folder: Path) -> None:
    """Remove a copy, whatever its state, if there is one. Raises `IndexInUse` if somebody has it open."""
    if lucene_folder(folder).is_dir():
        with locked_index(lucene_folder(folder)):
            shutil.rmtree(lucene_folder(folder))
    if folder.is_dir():
        _remove_other_columns(folder, None)


def _check_commit_exists(folder: Path) -> None:
    if not any(lucene_folder(folder).glob("segments_*")):
        raise CopyUnusable(folder, "there is none")


def _user_data(folder: Path, closed: LockedIndex) -> dict[str, str]:
    try:
        return closed.user_data()
    except (IndexDamaged, LuceneFailed) as error:
        # Lucene gives up in many ways on bytes that are not what it wrote.
        raise CopyUnusable(folder, f"its last commit can't be read: {error.message}") from error


def _identity(folder: Path, user_data: Mapping[str, str]) -> CopyIdentity:
    try:
        return CopyIdentity(
            dataset=user_data["dataset"],
            topic_id=user_data["topic_id"],
            shard=int(user_data["shard"]),
            bucket=int(user_data["bucket"]),
            attempt=user_data["attempt"],
        )
    except (KeyError, ValueError) as error:
        raise CopyUnusable(folder, f"its last commit does not say whose it is ({error!r})") from error


def _read_keys(folder: Path, user_data: Mapping[str, str]) -> tuple[CutSnapshot, KeyTable]:
    snapshot = _read_columns(folder, user_data)
    keys, table = snapshot.keys, KeyTable(len(snapshot.keys))
    if not table.insert(keys.key_low, keys.key_high, np.arange(len(keys), dtype=np.uint32)).all():
        raise CopyUnusable(folder, "its columns name a key twice")
    return snapshot, table


def _read_columns(folder: Path, user_data: Mapping[str, str]) -> CutSnapshot:
    name, checksum = user_data.get(_COLUMNS, ""), user_data.get(_DIGEST, "")
    try:
        data = np.fromfile(folder / name, dtype=np.uint8)
    except OSError as error:
        raise CopyUnusable(folder, f"its columns {name!r} can't be read: {error}") from error
    if f"{digest(data):032x}" != checksum:
        raise CopyUnusable(folder, f"its columns {name} are damaged")
    try:
        snapshot = decode_snapshot(data)
    except UnknownSnapshot as error:
        raise CopyUnusable(folder, error.message) from error
    if str(snapshot.bucket) != user_data["bucket"] or str(snapshot.next_part_id) != user_data.get(_NEXT_PART_ID):
        raise CopyUnusable(folder, f"its columns {name} are of bucket {snapshot.bucket}")
    return snapshot


def _write_durably(path: Path, data: bytes) -> None:
    """Have a file with this content, and under this name nothing less, even if the machine stops in between."""
    unfinished = path.with_name(path.name + _UNFINISHED)
    with unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_other_columns(folder: Path, name: str | None) -> None:
    for path in folder.glob(_COLUMNS_FILES):
        if path.name != name:
            path.unlink()
