"""The local copy of a shard's index, from which a restart on the same host begins instead of loading all stored
buckets.

A folder has `lucene/` and, next to it, the columns as of the copy's cut. The user data of Lucene's last commit has the
copy's identity, its bucket, and the name and checksum of the columns' file. So this commit switches atomically to a new
copy: files that it does not reference are left over from an unfinished save, and are deleted.

Damage is detected by checksums: that of the columns in the commit, and those at the end of each of Lucene's files. A
separate list of checksums of Lucene's files could only be written after the commit, and in between there would be no
valid copy.

The commit comes later than the cut, so Lucene has more than the columns: keys that were added since, and keys that were
purged but not deleted yet. The columns determine which keys there are.

A copy is used completely or not at all. Everything in it is also in the store, so an unusable copy is discarded and the
index is loaded from there.
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
    """There is no copy, it is not the expected one, or it is damaged; `reason` has the details."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(
            f"the local copy of the index in {folder} can't be used: {reason}",
            remedy="Discard it and load the index from the store",
        )
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CopyIdentity:
    """The shard of a copy, and the bucket of its cut; `attempt` is the one that the manifest references for the
    bucket.
    """

    dataset: str
    topic_id: str
    shard: int
    bucket: int
    attempt: str


def lucene_folder(folder: Path) -> Path:
    """The Lucene folder of a copy: the index must be opened there, so that the copy can be saved."""
    return folder / "lucene"


def save_copy(folder: Path, index: PartKeyIndex, snapshot: CutSnapshot, identity: CopyIdentity) -> None:
    """Save the copy of `identity` in a folder; its bucket must be in the manifest already.

    `index` is the one that is open in `lucene_folder(folder)`. It may grow concurrently, but `ShardIndex.stored` must
    not be called for a later bucket before this returns, since that deletes documents that the snapshot needs. If this
    is interrupted, either the previous or the new copy is valid.
    """
    if snapshot.bucket != identity.bucket:
        raise ValueError(f"a snapshot of bucket {snapshot.bucket} can't be saved as bucket {identity.bucket}")
    data = encode_snapshot(snapshot)
    checksum = f"{digest(data):032x}"
    # Named by its content, so a file that a commit references is never overwritten.
    name = f"columns-{snapshot.bucket}-{checksum}"
    _write_durably(folder / name, data)
    index.commit(
        {key: str(value) for key, value in asdict(identity).items()}
        | {_COLUMNS: name, _DIGEST: checksum, _NEXT_PART_ID: str(snapshot.next_part_id)}
    )
    _remove_other_columns(folder, name)


def saved_identity(folder: Path) -> CopyIdentity:
    """Return the identity of the copy in a folder. Raises `CopyUnusable` if there is none."""
    _check_commit_exists(folder)
    with locked_index(lucene_folder(folder)) as closed:
        return _identity(folder, _user_data(folder, closed))


@dataclass(slots=True)
class OpenedCopy:
    """An opened copy with valid checksums, before it is known whether it is the wanted one.

    Opening does not change the copy. It ends with `verified_as` or `close`.
    """

    folder: Path
    identity: CopyIdentity
    snapshot: CutSnapshot
    table: KeyTable
    """Each key of the snapshot with its row."""
    index: PartKeyIndex
    found: BitMap
    """The part ids that have a document."""

    def verified_as(self, expected: CopyIdentity, retention: int) -> tuple[PartKeyIndex, CutSnapshot]:
        """Return the Lucene index and the columns as they were right after the cut of the expected bucket, for
        `load_index`.

        `expected` is what the manifest references for that bucket, and `retention` is the current one. Raises
        `CopyUnusable` if the copy is another one, and then closes it.
        """
        try:
            self._check(expected, retention)
            self._keep_documents()
        except BaseException:
            self.close()
            raise
        return self.index, self.snapshot

    def close(self) -> None:
        """Close the copy."""
        self.index.close()

    def _check(self, expected: CopyIdentity, retention: int) -> None:
        if self.identity != expected:
            raise CopyUnusable(self.folder, f"it is {self.identity}, but {expected} was expected")
        kept = self.snapshot.retention
        if retention > kept:
            raise CopyUnusable(
                self.folder, f"it was purged by a retention of {kept} ms, and the retention is now {retention} ms"
            )

    def _keep_documents(self) -> None:
        """Delete the documents of keys that were not there at the cut: those added since, and those purged before."""
        present = to_bitmap(self.snapshot.keys.part_id)
        if not present <= self.found:
            raise CopyUnusable(self.folder, f"{len(present - self.found)} of its {len(present)} keys have no document")
        if self.found != present:
            self.index.delete(self.found - present)
            self.index.refresh()


def open_saved(folder: Path, *, ram_buffer_mb: float = DEFAULT_RAM_BUFFER_MB) -> OpenedCopy:
    """Open the copy in a folder, of any shard. Raises `CopyUnusable` unless it exists and all checksums are valid, and
    `IndexInUse` if it is open elsewhere.
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
    """Open the copy in a folder, if it is the expected one: `open_saved` followed by `verified_as`."""
    found = saved_identity(folder)
    if found != expected:
        raise CopyUnusable(folder, f"it is {found}, but {expected} was expected")
    return open_saved(folder, ram_buffer_mb=ram_buffer_mb).verified_as(expected, retention)


def discard_copy(folder: Path) -> None:
    """Delete a copy in any state, if there is one. Raises `IndexInUse` if it is open elsewhere."""
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
        # Lucene fails in many ways on bytes that it did not write.
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
        raise CopyUnusable(folder, f"its last commit has no valid identity ({error!r})") from error


def _read_keys(folder: Path, user_data: Mapping[str, str]) -> tuple[CutSnapshot, KeyTable]:
    snapshot = _read_columns(folder, user_data)
    keys, table = snapshot.keys, KeyTable(len(snapshot.keys))
    if not table.insert(keys.key_low, keys.key_high, np.arange(len(keys), dtype=np.uint32)).all():
        raise CopyUnusable(folder, "its columns have a duplicate key")
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
    """Write a file atomically: under this name, the file is complete even if the machine stops in between."""
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
