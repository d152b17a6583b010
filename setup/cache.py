"""The cache folder of set-up. An entry is either complete or absent.

An entry is a folder whose name has a hash of all inputs. It is built in a temporary folder with a listing of its files
and their digests, and then renamed to its name. The listing is checked before each use, so a truncated or changed entry
is never used, but built again. Each entry has a lock, so several checkouts can be set up at the same time: the first
one builds the entry, and the others wait for it.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FORMAT = 1  # Raise it when the format of the listing changes: older entries are then ignored.
LISTING = "strandline-entry.json"
UNUSED_AFTER_DAYS = 60


def default_root(environ: Mapping[str, str]) -> Path:
    """The cache folder: `STRANDLINE_CACHE`, or `strandline` in the user's cache folder."""
    if chosen := environ.get("STRANDLINE_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "strandline"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The inputs of an entry: its name, and the values and files that determine its content."""

    name: str
    values: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    def key(self) -> str:
        """A hash of all inputs. Of a file's path only the name counts, so the place of the checkout does not matter."""
        digest = hashlib.sha256(f"{FORMAT}\0{self.name}".encode())
        for value in self.values:
            digest.update(b"\0value\0" + value.encode())
        for path in self.files:
            digest.update(b"\0file\0" + path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()[:20]


class Cache:
    """The entries in one root folder. `notice` is called with texts for the user, such as why a step takes long."""

    def __init__(self, root: Path, notice: Callable[[str], None] = lambda _: None) -> None:
        self.root = root
        self._notice = notice

    def entry(self, recipe: Recipe, build: Callable[[Path], None]) -> tuple[Path, bool]:
        """The folder of the entry, and whether it was built.

        `build` gets an empty folder to fill. If it raises, its output is deleted.
        """
        identity = f"{recipe.name}-{recipe.key()}"
        path = self.root / identity
        with self.lock(identity):
            # The holder of the lock is the only builder, so other builds of this entry were interrupted.
            for leftover in self.root.glob(f"building-{identity}-*"):
                shutil.rmtree(leftover)
            fault = find_fault(path)
            if fault is None:
                os.utime(path / LISTING)  # The time of last use, by which unused entries are removed.
                return path, False
            if path.exists():
                self._notice(f"the cache entry {identity} is damaged ({fault}); it is built again")
            temporary = Path(tempfile.mkdtemp(prefix=f"building-{identity}-", dir=self.root))
            try:
                content = temporary / "entry"
                content.mkdir()
                build(content)
                _write_listing(content)
                if path.exists():
                    path.rename(temporary / "damaged")
                content.rename(path)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            return path, True

    def find(self, recipe: Recipe) -> Path | None:
        """The folder of the entry, or None if it does not exist or is damaged. It is not built."""
        identity = f"{recipe.name}-{recipe.key()}"
        path = self.root / identity
        with self.lock(identity):
            if find_fault(path) is not None:
                return None
            os.utime(path / LISTING)
            return path

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold a lock of this cache. The kernel releases it when the process ends in any way."""
        folder = self.root / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._notice(f"another set-up is busy with {name}; waiting for it")
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def drop_unused(self, now: float | None = None) -> list[str]:
        """Remove entries that have not been used for `UNUSED_AFTER_DAYS`, and return their names."""
        oldest = (time.time() if now is None else now) - UNUSED_AFTER_DAYS * 86_400
        dropped = []
        for listing in sorted(self.root.glob(f"*/{LISTING}")):
            identity = listing.parent.name
            with self.lock(identity):
                if listing.exists() and listing.stat().st_mtime < oldest:
                    shutil.rmtree(listing.parent)
                    dropped.append(identity)
        return dropped


def find_fault(entry: Path) -> str | None:
    """Why the entry can't be used; None if every listed file exists with the listed digest."""
    if not entry.is_dir():
        return "it does not exist"
    try:
        listed: dict[str, str] = json.loads((entry / LISTING).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return "its listing is missing or unreadable"
    with ThreadPoolExecutor() as pool:
        for name, expected, found in zip(
            listed, listed.values(), pool.map(_fingerprint, (entry / name for name in listed)), strict=True
        ):
            if found != expected:
                return f"{name} is {'missing' if found is None else 'altered'}"
    return None


def _write_listing(folder: Path) -> None:
    files = {
        str(path.relative_to(folder)): _fingerprint(path)
        for path in sorted(folder.rglob("*"))
        # Byte code is written by the first process that imports a module, so it is not part of the entry.
        if (path.is_symlink() or path.is_file()) and "__pycache__" not in path.parts
    }
    (folder / LISTING).write_text(json.dumps({"files": files}, indent=0), encoding="utf-8")


def _fingerprint(path: Path) -> str | None:
    """The digest of a file, or the target of a link; None if it does not exist."""
    try:
        if path.is_symlink():
            return f"link {path.readlink()}"
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError:
        return None
