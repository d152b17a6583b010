"""Snappy's block format, with a limit on the decompressed size.

A block starts with its decompressed length, so a block that is too large is refused before it is decompressed.
"""

import cramjam
import numpy as np
import numpy.typing as npt

from strandline.errors import Fatal

MAX_LENGTH_BYTES = 5  # A 32-bit length in groups of seven bits.


class BadBlock(Fatal):
    """The bytes are not a snappy block, or its decompressed size is above the limit."""


def compress(data: bytes) -> bytes:
    """The data as one block."""
    return bytes(cramjam.snappy.compress_raw(data))


def decompress(block: bytes, *, limit: int) -> bytes:
    """The data of a block, if it has at most `limit` bytes."""
    data = np.empty(unpacked_length(block, limit=limit), dtype=np.uint8)
    decompress_into(block, data)
    return data.tobytes()


def decompress_into(block: bytes, data: npt.NDArray[np.uint8]) -> None:
    """Decompress a block into an array of exactly the length in the block's header."""
    try:
        written = cramjam.snappy.decompress_raw_into(block, data.data)
    except cramjam.DecompressionError as error:
        raise BadBlock(f"a snappy block of {len(block)} bytes is damaged: {error}") from error
    if written != len(data):
        raise BadBlock(f"a snappy block has {written} bytes, but its header states {len(data)}")


def unpacked_length(block: bytes, *, limit: int) -> int:
    """The decompressed length in the block's header, if it is within the limit."""
    length = 0
    for position, byte in enumerate(block[:MAX_LENGTH_BYTES]):
        length |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            if length > limit:
                raise BadBlock(
                    f"a snappy block of {len(block)} bytes would unpack to {length}, over the limit of {limit}"
                )
            return length
    raise BadBlock(f"a snappy block of {len(block)} bytes has no valid length at its start")
