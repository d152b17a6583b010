"""Compressed text: it can only be read from its beginning on, so such a file is one part, however large it is."""

import zlib
from types import TracebackType
from typing import Self

import pyarrow as pa

from strandline.jobs.sources.files import SourceFile, SourceUnusable, file_system

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_BLOCK = 4 << 20


def compression_of(uri: str) -> str | None:
    """How a file is compressed, by the ending of its name; None for plain files."""
    path = uri.partition("?")[0] if "://" in uri else uri
    return next((name for ending, name in COMPRESSIONS.items() if path.endswith(ending)), None)


class CompressedReader:
    """A `ByteReader` of what a compressed file holds. Places may only rise from call to call: it keeps what lies behind
    the last place that was asked for, and reads on.
    """

    def __init__(self, file: SourceFile, compression: str) -> None:
        system, path = file_system(file.uri)
        self._uri = file.uri
        self._stream = system.open_input_stream(path, compression=compression)
        self._kept, self._start = bytearray(), 0

    def read_at(self, count: int, offset: int) -> bytes:
        """Up to `count` bytes from `offset` on. Raises `SourceUnusable` for a damaged file."""
        # A record's last byte is looked at once more after the records behind it were read.
        if offset < self._start:
            raise ValueError(f"{self._uri} was read up to {self._start}, and byte {offset} was asked for")
        while self._start + len(self._kept) < offset + count and self._fill():
            # What nobody asks for any more goes at once: a skip of gigabytes holds one block.
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
                f"{self._uri} can't be unpacked behind byte {self._start + len(self._kept)} of its content: {error}",
                remedy="The file is damaged or cut short: copy it again",
            ) from error
        self._kept += block
        return bool(block)

    def _drop(self, offset: int) -> None:
        dropped = min(offset - self._start, len(self._kept))
        if dropped > 0:
            del self._kept[:dropped]
            self._start += dropped
