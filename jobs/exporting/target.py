"""The folder that an export is written to, on any file system that pyarrow knows."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs as pafs

from strandline.disk import is_full
from strandline.errors import Fatal, Retryable
from strandline.jobs.sources.files import file_system


class TargetUnusable(Fatal):
    """The target can't be written to as it is."""


class TargetUnreachable(Retryable):
    """The target's file system did not answer, or has no room now."""


@dataclass(frozen=True, slots=True)
class Target:
    """A folder by its URI. Paths below are relative to it."""

    uri: str

    def uri_of(self, path: str) -> str:
        """The URI of a path below it."""
        base, _, query = self.uri.partition("?")
        return f"{base.rstrip('/')}/{path}{'?' + query if query else ''}"

    def read(self, path: str) -> bytes | None:
        """A file's content; None if there is no such file."""
        with self._failures(path):
            system, place = self._place(path)
            if system.get_file_info(place).type != pafs.FileType.File:
                return None
            with system.open_input_stream(place) as file:
                return bytes(file.read())

    def write(self, path: str, content: bytes) -> None:
        """Write a file as a whole: a reader finds the former content or this one. Aside and renamed on a file system
        that renames; object stores show a file only once it is whole.
        """
        with self._failures(path):
            system, place = self._place(path)
            system.create_dir(place.rpartition("/")[0], recursive=True)
            renames = isinstance(system, pafs.LocalFileSystem | pafs.HadoopFileSystem)
            aside = f"{place.rpartition('/')[0]}/_{place.rpartition('/')[2]}.new" if renames else place
            with system.open_output_stream(aside, compression=None) as file:
                file.write(content)
            if renames:
                system.move(aside, place)

    @contextmanager
    def opened(self, path: str) -> Iterator["HashingFile"]:
        """A new file, to be written from its beginning to its end."""
        with self._failures(path):
            system, place = self._place(path)
            system.create_dir(place.rpartition("/")[0], recursive=True)
            with system.open_output_stream(place, compression=None) as file:
                yield HashingFile(file)

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder; none if there is no such folder."""
        with self._failures(folder):
            system, place = self._place(folder)
            found = system.get_file_info(pafs.FileSelector(place, allow_not_found=True))
            return sorted(str(one.base_name) for one in found if one.type == pafs.FileType.File)

    def remove(self, path: str) -> None:
        """Remove a file, if there is one."""
        with self._failures(path):
            system, place = self._place(path)
            if system.get_file_info(place).type == pafs.FileType.File:
                system.delete_file(place)

    def remove_folder(self, path: str) -> None:
        """Remove a folder with all that is in it, if there is one."""
        with self._failures(path):
            system, place = self._place(path)
            if system.get_file_info(place).type == pafs.FileType.Directory:
                system.delete_dir(place)

    def _place(self, path: str) -> tuple[pafs.FileSystem, str]:
        system, base = file_system(self.uri)
        return system, f"{base.rstrip('/')}/{path}"

    @contextmanager
    def _failures(self, path: str) -> Iterator[None]:
        try:
            yield
        except PermissionError as error:
            raise TargetUnusable(
                f"{self.uri_of(path)} may not be written: {error}",
                remedy="Give the user that runs the job the right to write there",
            ) from error
        except (NotADirectoryError, IsADirectoryError) as error:
            raise TargetUnusable(f"{self.uri_of(path)} can't be written: {error}", remedy="Check --to") from error
        except OSError as error:
            if is_full(error):
                raise TargetUnreachable(
                    f"the disk of {self.uri} is full", remedy="Free space on it: the part is tried again"
                ) from error
            raise TargetUnreachable(f"{self.uri_of(path)} can't be reached: {error}") from error


class HashingFile:
    """A file that is only written, and hashes what is written to it."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file, self._hash = file, hashlib.sha256()
        self.size = 0
        self.closed = False

    @property
    def sha256(self) -> str:
        """That of all bytes so far."""
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
        """Its owner closes the file below."""
        self.closed = True
