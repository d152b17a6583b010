"""Compressed text. It can only be read from the start, so a compressed file is one part, however large it is."""

import zlib
from types import TracebackType
from typing import Self

import pyarrow as pa

from strandline.jobs.sources.files import SourceFile, file_system
from strandline.jobs.sources.source_errors import SourceUnusable
from strandline.jobs.sources.uris import split_options

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_BLOCK = 4 << 20


def compression_of(uri: str) -> str | None:
    """The compression of a file, by its extension; None for plain files."""
    path, _ = split_options(uri)
    return next((name for ending, name in COMPRESSIONS.items() if path.endswith(ending)), None)


class CompressedReader:
    """A `ByteReader` of the uncompressed content of a file. Offsets must not decrease from call to call: the reader
    only keeps the bytes after the last requested offset.
    """

    def __init__(self, file: SourceFile, compression: str) -> None:
        system, path = file_system(file.uri)
        self._uri = file.uri
        self._stream = system.open_input_stream(path, compression=compression)
        self._kept, self._start = bytearray(), 0

    def read_at(self, count: int, offset: int) -> bytes:
        """Up to `count` bytes from `offset`. Raises `SourceUnusable` for a damaged file."""
        # The last byte of a record is read again after the records that follow it.
        if offset < self._start:
            raise ValueError(
                f"byte {offset} of {self._uri} was requested, but bytes before {self._start} are discarded"
            )
        while self._start + len(self._kept) < offset + count and self._fill():
            # Dropped per block, so that skipping gigabytes only keeps one block in memory.
            self._drop(offset)
        self._drop(offset)
        return bytes(self._kept[:count])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def _fill(self) -> bool:
        try:
            block = self._stream.read(_BLOCK)
        except (OSError, pa.ArrowInvalid, zlib.error) as error:
            raise SourceUnusable(
                f"{self._uri} can't be decompressed after byte {self._start + len(self._kept)} of its content: {error}",
                remedy="The file is damaged or truncated: copy it again",
            ) from error
        self._kept += block
        return bool(block)

    def _drop(self, offset: int) -> None:
        dropped = min(offset - self._start, len(self._kept))
        if dropped > 0:
            del self._kept[:dropped]
            self._start += dropped
