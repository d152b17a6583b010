"""Files in memory, behind the interface of pyarrow's file systems."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow.fs as pafs


@dataclass(frozen=True)
class FileInfo:
    size: int
    mtime_ns: int
    type: pafs.FileType = pafs.FileType.File


@dataclass
class Files:
    """Contents and modification times by path."""

    contents: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    is_away: bool = False

    def put(self, path: str, content: bytes, mtime_ns: int) -> None:
        self.contents[path] = (content, mtime_ns)

    def info(self, path: str) -> FileInfo:
        self._require_there()
        content, mtime_ns = self.contents[path]
        return FileInfo(len(content), mtime_ns)

    def read(self, path: str, count: int, offset: int) -> bytes:
        self._require_there()
        return self.contents[path][0][offset : offset + count]

    def _require_there(self) -> None:
        if self.is_away:
            raise OSError("the disk is away")


class FileSystem:
    """The methods of pyarrow's file systems that are used. `call` executes a call for a process."""

    def __init__(self, files: Files, call: Callable[..., Any]) -> None:
        self._files, self._call = files, call

    def get_file_info(self, path: str) -> FileInfo:
        found: FileInfo = self._call(self._files.info, path)
        return found

    def open_input_file(self, path: str) -> "OpenFile":
        self._call(self._files.info, path)
        return OpenFile(self._files, path, self._call)


class OpenFile:
    def __init__(self, files: Files, path: str, call: Callable[..., Any]) -> None:
        self._files, self._path, self._call = files, path, call

    def read_at(self, count: int, offset: int) -> bytes:
        found: bytes = self._call(self._files.read, self._path, count, offset)
        return found

    def __enter__(self) -> "OpenFile":
        return self

    def __exit__(self, *_: object) -> None:
        pass
