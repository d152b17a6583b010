"""The cache folder: entries that are whole or do not exist.

An entry is a folder named after what it holds and a hash of everything that went into it. It is built beside its
place, listed file by file with digests, and moved into place by one rename. Before each use the listing is checked
again, so an entry that was cut off, truncated or altered is built anew and never used. One lock an entry lets any
number of checkouts set up at the same time: the first builds, the others wait and then find it.
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

FORMAT = 1  # Raise it when the listing's form changes: every older entry is then left behind.
LISTING = "strandline-entry.json"
UNUSED_AFTER_DAYS = 60


def default_root(environ: Mapping[str, str]) -> Path:
    """Where the cache lies: `STRANDLINE_CACHE`, else `strandline` in the user's cache folder."""
    if chosen := environ.get("STRANDLINE_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "strandline"


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an entry is made of: its name, and the values and files that decide its content."""

    name: str
    values: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    def key(self) -> str:
        """A hash of every input. File names count by their last part only: where the checkout lies does not matter."""
        digest = hashlib.sha256(f"{FORMAT}\0{self.name}".encode())
        for value in self.values:
            digest.update(b"\0value\0" + value.encode())
        for path in self.files:
            digest.update(b"\0file\0" + path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()[:20]


class Cache:
    """Entries below one root folder. `notice` is told in plain words what a user may wonder about."""

    def __init__(self, root: Path, notice: Callable[[str], None] = lambda _: None) -> None:
        self.root = root
        self._notice = notice

    def entry(self, recipe: Recipe, build: Callable[[Path], None]) -> tuple[Path, bool]:
        """The folder of a whole entry, and whether it had to be built.

        `build` is given an empty folder to fill. If it raises, nothing of what it did can be found later.
        """
        identity = f"{recipe.name}-{recipe.key()}"
        place = self.root / identity
        with self.lock(identity):
            # Whoever holds the lock is the only builder, so what others left half-built is dead.
            for leftover in self.root.glob(f"building-{identity}-*"):
                shutil.rmtree(leftover)
            fault = find_fault(place)
            if fault is None:
                os.utime(place / LISTING)  # The date of last use, by which old entries are dropped.
                return place, False
            if place.exists():
                self._notice(f"the cache entry {identity} is damaged ({fault}); it is built again")
            workplace = Path(tempfile.mkdtemp(prefix=f"building-{identity}-", dir=self.root))
            try:
                content = workplace / "entry"
                content.mkdir()
                build(content)
                _write_listing(content)
                if place.exists():
                    place.rename(workplace / "damaged")
                content.rename(place)
            finally:
                shutil.rmtree(workplace, ignore_errors=True)
            return place, True

    def find(self, recipe: Recipe) -> Path | None:
        """The folder of a whole entry, or None where there is none: it is not built."""
        identity = f"{recipe.name}-{recipe.key()}"
        place = self.root / identity
        with self.lock(identity):
            if find_fault(place) is not None:
                return None
            os.utime(place / LISTING)
            return place

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold a lock of this cache; it ends with the process, however that ends."""
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
        """Remove entries that no set-up has used for a long time; say which."""
        oldest = (time.time() if now is None else now) - UNUSED_AFTER_DAYS * 86_400
        dropped = []
        for listing in sorted(self.root.glob(f"*/{LISTING}")):
            identity = listing.parent.name
            with self.lock(identity):
                if listing.exists() and listing.stat().st_mtime < oldest:
                    shutil.rmtree(listing.parent)
                    dropped.append(identity)
        return dropped


def find_fault(place: Path) -> str | None:
    """Why the entry can't be used, or None if every file that was listed is there, byte for byte."""
    if not place.is_dir():
        return "it is not there"
    try:
        listed: dict[str, str] = json.loads((place / LISTING).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return "its listing is missing or unreadable"
    with ThreadPoolExecutor() as pool:
        for name, expected, found in zip(
            listed, listed.values(), pool.map(_fingerprint, (place / name for name in listed)), strict=True
        ):
            if found != expected:
                return f"{name} is {'missing' if found is None else 'altered'}"
    return None


def _write_listing(folder: Path) -> None:
    files = {
        str(path.relative_to(folder)): _fingerprint(path)
        for path in sorted(folder.rglob("*"))
        # Byte code is written by whoever imports first, so it says nothing about the entry.
        if (path.is_symlink() or path.is_file()) and "__pycache__" not in path.parts
    }
    (folder / LISTING).write_text(json.dumps({"files": files}, indent=0), encoding="utf-8")


def _fingerprint(path: Path) -> str | None:
    """What must not change about a file: its digest, or a link's target; None if it is not there."""
    try:
        if path.is_symlink():
            return f"link {path.readlink()}"
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError:
        return None
