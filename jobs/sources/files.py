"""Which files a job reads, found by URI or pattern, and their identity, by which a file that changed is noticed."""

import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from strandline.digest import digest
from strandline.errors import Fatal, Retryable

_EDGE = 64 << 10
"""How many bytes at the head and at the tail of a file its identity includes."""
_WILDCARDS = "*?["


class SourceUnusable(Fatal):
    """A source that can't be read as it is."""


class SourceUnreachable(Retryable):
    """The file system did not answer."""


class SourceChanged(Fatal):
    """A file is not the one that the job was planned for."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as it was when it was looked at. `digest` is that of its head and its tail."""

    uri: str
    size: int
    modified_ns: int
    digest: str


def require_no_credentials(uri: str) -> None:
    """Refuse a URI with a user or a password, without repeating it: URIs stand in the rows of jobs, in logs and in
    reports. Raises `SourceUnusable`.
    """
    scheme, separator, rest = uri.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    port = authority.rpartition("]")[2].partition(":")[2]
    # A secret that is not percent-encoded may have a slash: then it stands where a port would.
    if separator and ("@" in authority or (port and not port.isdecimal())):
        raise SourceUnusable(
            f"a URI with {scheme}:// holds a user or a password",
            remedy="Give credentials to workers by their environment, such as AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, and leave them out of the URI",
        )


def file_system(uri: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a URI, and the path there. A URI without a scheme is a path of this machine. Raises
    `SourceUnusable` for a URI that holds credentials.
    """
    require_no_credentials(uri)
    if "://" not in uri:
        return pafs.LocalFileSystem(), str(Path(uri).absolute())
    try:
        system, path = pafs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SourceUnusable(
            f"{uri} can't be read: {error}", remedy="Use a path, or a URI with file://, s3://, gs:// or hdfs://"
        ) from error
    except OSError as error:
        raise SourceUnreachable(
            f"the file system of {uri} did not answer: {error}", remedy="Check its address, and that it runs"
        ) from error
    return system, str(path)


def find_files(uris: Sequence[str]) -> list[SourceFile]:
    """All files that the URIs and patterns name, each once, in order of their URIs. Raises `SourceUnusable` for a
    directory, a file that is missing, and a pattern that nothing matches.
    """
    found = sorted({file for uri in uris for file in _expand(uri)})
    return [identify(uri) for uri in found]


def find_folders(uris: Sequence[str]) -> list[str]:
    """All folders that the URIs and patterns name, each once, in order of their URIs. Raises `SourceUnusable` for a
    pattern that no folder matches; whether any other is a folder is left to its reader.
    """
    found: set[str] = set()
    for uri in uris:
        if _is_pattern(uri):
            found.update(_matching(uri, pafs.FileType.Directory))
        else:
            found.add(full_uri(uri, file_system(uri)[1]))
    return sorted(found)


def identify(uri: str) -> SourceFile:
    """A file with its identity now."""
    system, path = file_system(uri)
    info = _info(system, uri, path)
    with _opened(system, uri, path) as file:
        head = file.read_at(min(_EDGE, info.size), 0)
        tail = file.read_at(min(_EDGE, info.size), max(0, info.size - _EDGE))
    return SourceFile(uri, info.size, info.mtime_ns or 0, f"{digest(head + tail):032x}")


def require_unchanged(file: SourceFile) -> None:
    """Raises `SourceChanged` unless the file is still the one that was looked at."""
    now = identify(file.uri)
    if now == file:
        return
    what = f"its size was {file.size} and is {now.size}" if now.size != file.size else "its size is the same"
    raise SourceChanged(
        f"{file.uri} has changed since the job was planned: {what}",
        remedy="Plan a new job for the file as it is now, or put the former one back and resume",
    )


def open_file(file: SourceFile) -> pa.NativeFile:
    """The file, open for reading at any place. The caller closes it."""
    system, path = file_system(file.uri)
    return _opened(system, file.uri, path)


def _expand(uri: str) -> Iterator[str]:
    if _is_pattern(uri):
        yield from _matching(uri, pafs.FileType.File)
        return
    system, path = file_system(uri)
    _info(system, uri, path)
    yield full_uri(uri, path)


def _is_pattern(uri: str) -> bool:
    return any(character in uri for character in _WILDCARDS)


def _matching(uri: str, kind: pafs.FileType) -> Iterator[str]:
    # Of a pattern only the folder becomes a file system, and a secret may have a wildcard.
    require_no_credentials(uri)
    # The part before the first wildcard, up to its last slash, is a folder that exists.
    first = min(uri.find(character) for character in _WILDCARDS if character in uri)
    folder_uri, slash, _ = uri[:first].rpartition("/")
    base = folder_uri if slash else "."
    system, folder = file_system(base or "/")
    pattern = f"{folder.rstrip('/')}/{uri[len(folder_uri) + 1 if slash else 0 :]}"
    try:
        infos = system.get_file_info(pafs.FileSelector(folder, recursive=True, allow_not_found=True))
    except OSError as error:
        raise SourceUnreachable(f"the files of {uri} can't be listed: {error}") from error
    paths = [info.path for info in infos if info.type == kind and _matches(info.path, pattern)]
    if not paths:
        what = "file" if kind == pafs.FileType.File else "folder"
        raise SourceUnusable(f"no {what} matches {uri}", remedy="Check the pattern; * does not match a slash, ** does")
    for path in paths:
        yield full_uri(uri, path)


def full_uri(uri: str, path: str) -> str:
    """The URI of a path on the file system of another URI."""
    if "://" not in uri:
        return path
    scheme, _, rest = uri.partition("://")
    query = rest.partition("?")[2]
    prefix = "" if path.startswith("/") else "/" if scheme == "file" else ""
    return f"{scheme}://{prefix}{path}{'?' + query if query else ''}"


def _matches(path: str, pattern: str) -> bool:
    """Whether a path fits a pattern, folder by folder: * stays within one, ** crosses any number of them."""
    return _fits(path.split("/"), pattern.split("/"))


def _fits(path: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_fits(path[skipped:], pattern[1:]) for skipped in range(len(path) + 1))
    return bool(path) and fnmatch.fnmatchcase(path[0], pattern[0]) and _fits(path[1:], pattern[1:])


def _info(system: pafs.FileSystem, uri: str, path: str) -> pafs.FileInfo:
    try:
        info = system.get_file_info(path)
    except PermissionError as error:
        raise _forbidden(uri, error) from error
    except OSError as error:
        raise SourceUnreachable(f"{uri} can't be looked up: {error}") from error
    if info.type == pafs.FileType.Directory:
        raise SourceUnusable(f"{uri} is a directory", remedy=f"Name its files, as in '{uri.rstrip('/')}/*'")
    if info.type != pafs.FileType.File:
        raise SourceUnusable(f"there is no file {uri}", remedy="Check the path")
    return info


def _opened(system: pafs.FileSystem, uri: str, path: str) -> pa.NativeFile:
    try:
        return system.open_input_file(path)
    except PermissionError as error:
        raise _forbidden(uri, error) from error
    except FileNotFoundError as error:
        raise SourceUnusable(f"there is no file {uri}", remedy="Check the path") from error
    except OSError as error:
        raise SourceUnreachable(f"{uri} can't be opened: {error}") from error


def _forbidden(uri: str, error: Exception) -> SourceUnusable:
    return SourceUnusable(
        f"{uri} may not be read: {error}", remedy="Give the user that runs the job the right to read it"
    )
