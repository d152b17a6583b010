"""The folder to which an export is written, on any file system that pyarrow supports."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as pafs

from strandline.disk import is_full
from strandline.errors import Fatal, Retryable
from strandline.jobs.sources.files import file_system, has_folders, require_bucket
from strandline.jobs.sources.source_errors import storage_failure
from strandline.jobs.sources.uris import split_options


class TargetUnusable(Fatal):
    """The target can't be written until an operator changes something."""


class TargetUnreachable(Retryable):
    """The target's file system did not answer, or is full."""


@dataclass(frozen=True, slots=True)
class Target:
    """A folder. All paths are relative to it."""

    uri: str

    def uri_of(self, path: str) -> str:
        """The URI of a path."""
        base, options = split_options(self.uri)
        return f"{base.rstrip('/')}/{path}{options}"

    def read(self, path: str) -> bytes | None:
        """The content of a file; None if it does not exist."""
        with self._failures(path):
            system, full_path = self._resolve(path)
            if system.get_file_info(full_path).type != pafs.FileType.File:
                require_bucket(system, full_path)
                return None
            with system.open_input_stream(full_path) as file:
                return bytes(file.read())

    def write(self, path: str, content: bytes) -> None:
        """Write a file atomically: readers see the former content or the new one. Uses a temporary file and a rename
        where the file system supports it; object stores only show complete files.
        """
        with self._failures(path):
            system, full_path = self._resolve(path)
            folder, _, name = full_path.rpartition("/")
            renames = has_folders(system)
            temporary = f"{folder}/_{name}.new" if renames else full_path
            if renames:
                system.create_dir(folder, recursive=True)
            with system.open_output_stream(temporary, compression=None) as file:
                file.write(content)
            if renames:
                system.move(temporary, full_path)

    @contextmanager
    def opened(self, path: str) -> Iterator["HashingFile"]:
        """A new file, for sequential writing."""
        with self._failures(path):
            system, full_path = self._resolve(path)
            if has_folders(system):
                system.create_dir(full_path.rpartition("/")[0], recursive=True)
            with system.open_output_stream(full_path, compression=None) as file:
                yield HashingFile(file)

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder; empty if it does not exist."""
        with self._failures(folder):
            system, full_path = self._resolve(folder)
            found = system.get_file_info(pafs.FileSelector(full_path, allow_not_found=True))
            return sorted(str(one.base_name) for one in found if one.type == pafs.FileType.File)

    def remove(self, path: str) -> None:
        """Delete a file, if it exists."""
        with self._failures(path):
            system, full_path = self._resolve(path)
            if system.get_file_info(full_path).type == pafs.FileType.File:
                system.delete_file(full_path)

    def remove_folder(self, path: str) -> None:
        """Delete a folder with its contents, if it exists."""
        with self._failures(path):
            system, full_path = self._resolve(path)
            if system.get_file_info(full_path).type == pafs.FileType.Directory:
                system.delete_dir(full_path)

    def _resolve(self, path: str) -> tuple[pafs.FileSystem, str]:
        system, base = file_system(self.uri)
        return system, f"{base.rstrip('/')}/{path}"

    @contextmanager
    def _failures(self, path: str) -> Iterator[None]:
        try:
            yield
        except PermissionError as error:
            raise TargetUnusable(
                f"no permission to write {self.uri_of(path)}: {error}",
                remedy="Permit the user that runs the job to write there",
            ) from error
        except (NotADirectoryError, IsADirectoryError) as error:
            raise TargetUnusable(f"{self.uri_of(path)} can't be written: {error}", remedy="Check --to") from error
        except OSError as error:
            if is_full(error):
                raise TargetUnreachable(
                    f"the disk of {self.uri} is full", remedy="Free space on it; the part is retried"
                ) from error
            failure = storage_failure(error)
            kind = TargetUnreachable if failure.is_transient else TargetUnusable
            raise kind(f"{self.uri_of(path)} can't be written: {failure.cause}", remedy=failure.remedy) from error


class HashingFile:
    """A write-only file that computes the hash of its content."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file, self._hash = file, hashlib.sha256()
        self.size = 0
        self.closed = False

    @property
    def sha256(self) -> str:
        """The hash of all bytes so far."""
        return self._hash.hexdigest()

    def write(self, data: bytes) -> int:
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._file.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Only mark as closed: the owner closes the underlying file."""
        self.closed = True
