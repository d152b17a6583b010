"""Writes answers as samples: one `ReadResponse`, with a `QueryResult` per query, in one snappy block.

    ReadResponse { repeated QueryResult results = 1; }

A message and a snappy block have their length before their content. The lengths follow from the columns, so the answer
is measured first, and then written, compressed and sent in parts, of which one is in memory at a time. This works
because a block is its length and a sequence of elements, and no element refers to data before its own part: blocks
without their lengths can be concatenated to one block.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from strandline.arrays import I64s
from strandline.node.http.remote_read.columns import AnswerColumns
from strandline.node.http.remote_read.kernels.samples import (
    HEADER,
    HEADER_DUE,
    MAX_SAMPLE,
    measure_series,
    write_series,
)
from strandline.node.query.queries import QueryTooLarge
from strandline.wire.snappy import compress

PART_BYTES = 1 << 20
MAX_MESSAGE = 2**32 - 1  # The maximum length of a snappy block.

_TAG_RESULT = b"\x0a"


def sampled_parts(answers: Sequence[AnswerColumns], *, part_bytes: int = PART_BYTES) -> Iterator[bytes]:
    """The body of the response, part by part. Raises `QueryTooLarge` at once if it exceeds the length of a block."""
    measured = [_measured(columns) for columns in answers]
    headers = [_TAG_RESULT + varint(length) for _, length in measured]
    message = sum(map(len, headers)) + sum(length for _, length in measured)
    if message > MAX_MESSAGE:
        raise QueryTooLarge(
            f"the answer would take {message} bytes, more than the {MAX_MESSAGE} that a snappy block holds",
            remedy="Read less at a time, or accept STREAMED_XOR_CHUNKS, which has no such limit",
        )
    rest = [(header, columns, sizes) for header, columns, (sizes, _) in zip(headers, answers, measured, strict=True)]
    return _parts(varint(message), rest, part_bytes)


def _measured(columns: AnswerColumns) -> tuple[I64s, int]:
    """The size of each series' content, and of all series."""
    sizes = np.empty(len(columns), dtype=np.int64)
    return sizes, int(measure_series(columns.addresses, sizes))


def _parts(length: bytes, rest: list[tuple[bytes, AnswerColumns, I64s]], part_bytes: int) -> Iterator[bytes]:
    yield length
    while rest:
        # Removed from the list, so that an answer is freed when it was sent.
        header, columns, sizes = rest.pop(0)
        yield _elements(header)
        out = np.empty(max(part_bytes, HEADER + columns.longest_labels + MAX_SAMPLE), dtype=np.uint8)
        series, sample = 0, HEADER_DUE
        while series < len(columns):
            series, sample, written = write_series(columns.addresses, sizes, series, sample, out)
            yield _elements(out[:written].tobytes())


def _elements(data: bytes) -> bytes:
    """A compressed block without its length."""
    return compress(data)[len(varint(len(data))) :]


def varint(number: int) -> bytes:
    """A non-negative number as a varint."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
