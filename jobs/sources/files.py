"""The files of a job, found by URI or pattern, and their identities, which detect changed files."""

import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from strandline.digest import digest
from strandline.errors import Fatal, Retryable

_EDGE_BYTES = 64 << 10
"""The identity of a file includes this number of its first and last bytes."""
_WILDCARDS = "*?["


class SourceUnusable(Fatal):
    """The source can't be read until an operator changes something."""


class SourceUnreachable(Retryable):
    """The file system did not answer."""


class SourceChanged(Fatal):
    """A file has changed since the job was planned."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file with its identity. `digest` covers its first and last bytes."""

    uri: str
    size: int
    modified_ns: int
    digest: str


def require_no_credentials(uri: str) -> None:
    """Reject a URI with a user or a password, because URIs are stored in rows of jobs, logs and reports. Raises
    `SourceUnusable`, without the URI.
    """
    scheme, separator, rest = uri.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    port = authority.rpartition("]")[2].partition(":")[2]
    # A secret with a slash that is not percent-encoded is in the position of the port.
    if separator and ("@" in authority or (port and not port.isdecimal())):
        raise SourceUnusable(
            f"a URI with {scheme}:// holds a user or a password",
            remedy="Remove it from the URI, and set the credentials in the environment of the workers, for example as "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )


def file_system(uri: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a URI, and the path in it. A URI without a scheme is a local path. Raises `SourceUnusable` for
    a URI with credentials.
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
        if _is_pattern(uri):
            found.update(_matching(uri, pafs.FileType.Directory))
        else:
            found.add(full_uri(uri, file_system(uri)[1]))
    return sorted(found)


def identify(uri: str) -> SourceFile:
    """Read the identity of a file."""
    system, path = file_system(uri)
    info = _info(system, uri, path)
    with _open(system, uri, path) as file:
        head = file.read_at(min(_EDGE_BYTES, info.size), 0)
        tail = file.read_at(min(_EDGE_BYTES, info.size), max(0, info.size - _EDGE_BYTES))
    return SourceFile(uri, info.size, info.mtime_ns or 0, f"{digest(head + tail):032x}")


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
    if _is_pattern(uri):
        yield from _matching(uri, pafs.FileType.File)
        return
    system, path = file_system(uri)
    _info(system, uri, path)
    yield full_uri(uri, path)


def _is_pattern(uri: str) -> bool:
    return any(character in uri for character in _WILDCARDS)


def _matching(uri: str, kind: pafs.FileType) -> Iterator[str]:
    # Here, because only the folder of a pattern is passed to `file_system`, and a secret may contain a wildcard.
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
    """Whether a path matches a pattern: * matches within a folder, ** across any number of folders."""
    return _parts_match(path.split("/"), pattern.split("/"))


def _parts_match(path: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_parts_match(path[skipped:], pattern[1:]) for skipped in range(len(path) + 1))
    return bool(path) and fnmatch.fnmatchcase(path[0], pattern[0]) and _parts_match(path[1:], pattern[1:])


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


def _open(system: pafs.FileSystem, uri: str, path: str) -> pa.NativeFile:
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
        f"no permission to read {uri}: {error}", remedy="Permit the user that runs the job to read it"
    )
