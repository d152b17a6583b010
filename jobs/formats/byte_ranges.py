"""Reads byte ranges of files with `pyarrow.fs` into memory for kernels."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
from pyarrow import NativeFile
from pyarrow.fs import FileSystem

from strandline.errors import Fatal

Bytes = npt.NDArray[np.uint8]
PADDING = 64  # Kernels read 64-bit words, which may extend this far beyond the range.


class UnreadableSource(Fatal):
    """A file of a source is missing, truncated, damaged or not permitted to be read."""


@contextmanager
def named_errors(path: str) -> Iterator[None]:
    """Raise permanent errors of a file system as `UnreadableSource` with the name of the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise UnreadableSource(f"{path} does not exist", remedy="Check the path of the source") from error
    except PermissionError as error:
        raise UnreadableSource(
            f"no permission to read {path}: {error}", remedy="Permit the user of this process to read it"
        ) from error
    except (IsADirectoryError, NotADirectoryError) as error:
        raise UnreadableSource(f"{path} is not a file", remedy="Check the path of the source") from error


class RangeFile:
    """A file that is read by ranges. Must be closed, for example as a context manager."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        self.path = path
        with named_errors(path):
            self._file: NativeFile = fs.open_input_file(path)
            self.size: int = self._file.size()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def read(self, start: int, length: int) -> Bytes:
        """The bytes of the range, followed by `PADDING` zeros, so the array is longer than `length`.

        The caller must have compared the range with `size`. Raises `UnreadableSource` if the file is shorter now.
        """
        found = np.empty(length + PADDING, dtype=np.uint8)
        found[length:] = 0
        view = found.data[:length]
        with named_errors(self.path):
            self._file.seek(start)
            done = 0
            while done < length:
                count = self._file.readinto(view[done:])
                if not count:
                    raise UnreadableSource(
                        f"{self.path} ends at byte {start + done}, before byte {start + length}",
                        remedy="The file was truncated while it was read: copy it again",
                    )
                done += count
        return found

    def numbers(self, layout: str, start: int) -> tuple[int, ...]:
        """The numbers at a position, in a layout of `struct`."""
        return struct.unpack_from(layout, self.read(start, struct.calcsize(layout)).data)
