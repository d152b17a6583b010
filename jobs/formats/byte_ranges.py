"""Ranges of bytes of a source's files, read through `pyarrow.fs` into memory that kernels may walk."""

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
PADDING = 64  # Kernels read whole words, which may reach this far behind the last byte that counts.


class UnreadableSource(Fatal):
    """A file of a source is missing, is truncated or damaged, or may not be read."""


@contextmanager
def named_errors(path: str) -> Iterator[None]:
    """Give the errors of a file system that won't pass by themselves as `UnreadableSource`, with the file's name."""
    try:
        yield
    except FileNotFoundError as error:
        raise UnreadableSource(f"{path} does not exist", remedy="Check the source's address") from error
    except PermissionError as error:
        raise UnreadableSource(
            f"{path} may not be read: {error}", remedy="Allow the user of this process to read it"
        ) from error
    except (IsADirectoryError, NotADirectoryError) as error:
        raise UnreadableSource(f"{path} is not a file", remedy="Check the source's address") from error


class RangeFile:
    """A file that is read by ranges. Close it, or use it as a context manager."""

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
        """Those bytes, with `PADDING` zeros behind them: the array is longer than was asked for.

        The caller has compared the range with `size`; a file that has become shorter since is reported.
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
                        remedy="The file was truncated while it was read: copy it again from its origin",
                    )
                done += count
        return found

    def numbers(self, layout: str, start: int) -> tuple[int, ...]:
        """Numbers from a position on, laid out as `struct` has it."""
        return struct.unpack_from(layout, self.read(start, struct.calcsize(layout)).data)
