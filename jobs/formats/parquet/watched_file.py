"""A file that remembers read errors, because pyarrow raises the same error for them and for damaged content."""

from pyarrow import NativeFile


class WatchedFile:
    """A file for pyarrow's Parquet reader, with the methods that the reader calls."""

    def __init__(self, file: NativeFile) -> None:
        self._file = file
        self.failure: OSError | None = None
        """The error of the file system, if there was one."""

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def read(self, size: int | None = None) -> bytes:
        try:
            return bytes(self._file.read(size))
        except OSError as error:
            self.failure = error
            raise

    def seek(self, position: int, whence: int = 0) -> int:
        return int(self._file.seek(position, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
