"""The files of a job, found by URI or pattern, and their identities, which detect changed files."""

import fnmatch
import glob
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from strandline.digest import digest
from strandline.jobs.sources.s3 import SCHEME as S3_SCHEME
from strandline.jobs.sources.s3 import s3_file_system
from strandline.jobs.sources.source_errors import SourceChanged, SourceUnusable, source_errors
from strandline.jobs.sources.uris import (
    WILDCARDS,
    decoded_pattern,
    full_uri,
    is_pattern,
    require_no_credentials,
    split_options,
)

_EDGE_BYTES = 64 << 10
"""The identity of a file includes this number of its first and last bytes."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file with its identity. `digest` covers its first and last bytes."""

    uri: str
    size: int
    modified_ns: int
    digest: str


def file_system(uri: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a URI, and the path in it. A URI without a scheme is a local path. Raises `SourceUnusable` for
    a URI with credentials.
    """
    require_no_credentials(uri)
    if "://" not in uri:
        return pafs.LocalFileSystem(), str(Path(uri).absolute())
    with source_errors(uri):
        if uri.startswith(S3_SCHEME):
            return s3_file_system(uri)
        try:
            system, path = pafs.FileSystem.from_uri(uri)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SourceUnusable(
                f"{uri} can't be read: {error}", remedy="Use a path, or a URI with file://, s3://, gs:// or hdfs://"
            ) from error
    return system, str(path)


def has_folders(system: pafs.FileSystem) -> bool:
    """Whether a file system has folders, which must be created, and renames files atomically. Object stores have
    neither, and show a file once all of it is written.
    """
    return isinstance(system, pafs.LocalFileSystem | pafs.HadoopFileSystem)


def require_bucket(system: pafs.FileSystem, path: str) -> None:
    """Raise pyarrow's error if a path was not found because its bucket does not exist, which a look-up does not tell.
    Does nothing for other file systems.
    """
    if isinstance(system, pafs.S3FileSystem):
        with suppress(FileNotFoundError):
            system.get_file_info(pafs.FileSelector(path))


def find_files(uris: Sequence[str]) -> list[SourceFile]:
    """The distinct files of all URIs and patterns, sorted by URI. Raises `SourceUnusable` for a directory, a missing
    file, and a pattern that matches no file.
    """
    found = sorted({file for uri in uris for file in _expand(uri)})
    return [identify(uri) for uri in found]


def find_folders(uris: Sequence[str]) -> list[str]:
    """The distinct folders of all URIs and patterns, sorted by URI. Raises `SourceUnusable` for a pattern that matches
    no folder. Whether other URIs are folders is not checked.
    """
    found: set[str] = set()
    for uri in uris:
        if is_pattern(uri):
            found.update(_matching(uri, pafs.FileType.Directory))
        else:
            found.add(full_uri(uri, file_system(uri)[1]))
    return sorted(found)


def identify(uri: str) -> SourceFile:
    """Read the identity of a file."""
    system, path = file_system(uri)
    info = _info(system, uri, path)
    with _open(system, uri, path) as file, source_errors(uri):
        head = file.read_at(min(_EDGE_BYTES, info.size), 0)
        tail = file.read_at(min(_EDGE_BYTES, info.size), max(0, info.size - _EDGE_BYTES))
        tag = _entity_tag(file) if isinstance(system, pafs.S3FileSystem) else b""
    return SourceFile(uri, info.size, info.mtime_ns or 0, f"{digest(head + tail + tag):032x}")


def require_unchanged(file: SourceFile) -> None:
    """Raises `SourceChanged` unless the file still has the same identity."""
    now = identify(file.uri)
    if now == file:
        return
    what = f"its size was {file.size} and is {now.size}" if now.size != file.size else "its size is the same"
    raise SourceChanged(
        f"{file.uri} has changed since the job was planned: {what}",
        remedy="Plan a new job for the file as it is now, or put the former one back and resume",
    )


def open_file(file: SourceFile) -> pa.NativeFile:
    """Open a file for random access. The caller closes it."""
    system, path = file_system(file.uri)
    return _open(system, file.uri, path)


def _expand(uri: str) -> Iterator[str]:
    if is_pattern(uri):
        yield from _matching(uri, pafs.FileType.File)
        return
    system, path = file_system(uri)
    _info(system, uri, path)
    yield full_uri(uri, path)


def _matching(uri: str, kind: pafs.FileType) -> Iterator[str]:
    # Here, because only the folder of a pattern is passed to `file_system`, and a secret may contain a wildcard.
    require_no_credentials(uri)
    base, options = split_options(uri)
    # The part before the first wildcard, up to its last slash, is a folder.
    first = min(base.find(character) for character in WILDCARDS if character in base)
    folder_uri, slash, _ = base[:first].rpartition("/")
    if folder_uri.endswith(":/"):
        raise SourceUnusable(f"{uri} has a wildcard in its first folder or bucket", remedy="Name that one in full")
    system, folder = file_system((folder_uri if slash else ".") + options if folder_uri or not slash else "/")
    rest = base[len(folder_uri) + 1 if slash else 0 :]
    pattern = f"{glob.escape(folder.rstrip('/'))}/{decoded_pattern(rest) if '://' in uri else rest}"
    with source_errors(uri, "listed"):
        infos = _listed(system, folder)
    paths = [info.path for info in infos if info.type == kind and _matches(info.path, pattern)]
    if not paths:
        what = "file" if kind == pafs.FileType.File else "folder"
        raise SourceUnusable(f"no {what} matches {uri}", remedy="Check the pattern; * does not match a slash, ** does")
    for path in paths:
        yield full_uri(uri, path)


def _listed(system: pafs.FileSystem, folder: str) -> list[pafs.FileInfo]:
    """All files and folders below a folder; none if it does not exist. pyarrow's `allow_not_found` would accept a
    missing bucket.
    """
    try:
        return list(system.get_file_info(pafs.FileSelector(folder, recursive=True)))
    except FileNotFoundError:
        return []


def _entity_tag(file: pa.NativeFile) -> bytes:
    """The version that a server gives to a content. It also changes with bytes that are neither first nor last, within
    the second that modification times are rounded to.
    """
    tag = (file.metadata() or {}).get("ETag", b"")
    return tag if isinstance(tag, bytes) else str(tag).encode()


def _matches(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern: * matches within a folder, ** across any number of folders."""
    return _parts_match(path.split("/"), pattern.split("/"))


def _parts_match(path: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_parts_match(path[skipped:], pattern[1:]) for skipped in range(len(path) + 1))
    return bool(path) and fnmatch.fnmatchcase(path[0], pattern[0]) and _parts_match(path[1:], pattern[1:])


def _info(system: pafs.FileSystem, uri: str, path: str) -> pafs.FileInfo:
    with source_errors(uri, "looked up"):
        info = system.get_file_info(path)
        if info.type == pafs.FileType.NotFound:
            require_bucket(system, path)
    if info.type == pafs.FileType.Directory:
        raise SourceUnusable(f"{uri} is a directory", remedy=f"Name its files, as in '{uri.rstrip('/')}/*'")
    if info.type != pafs.FileType.File:
        raise SourceUnusable(f"there is no file {uri}", remedy="Check the path")
    return info


def _open(system: pafs.FileSystem, uri: str, path: str) -> pa.NativeFile:
    with source_errors(uri, "opened"):
        return system.open_input_file(path)
