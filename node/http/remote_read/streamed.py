"""Writes answers as a stream of frames with one series each, whose samples are in XOR chunks.

Prometheus' server splits a series at 1 MB of chunks and continues it in the next frame. Its client takes every frame
for another series, and then fails queries over a series that was split ("same labelset"). So this one splits only much
larger series. A client of Prometheus accepts frames of up to 50 MB by default.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from strandline.node.http.remote_read.columns import AnswerColumns
from strandline.node.http.remote_read.kernels.frames import CHUNK_FIELD_BYTES, FOOTER, HEADER, write_frames
from strandline.node.http.remote_read.kernels.xor_chunks import CHUNK_BYTES, CHUNK_SAMPLES

PART_BYTES = 1 << 20
FRAME_BYTES = 16 << 20


def streamed_parts(
    answers: Sequence[AnswerColumns], *, part_bytes: int = PART_BYTES, frame_bytes: int = FRAME_BYTES
) -> Iterator[bytes]:
    """The body of the response, part by part: complete frames, `part_bytes` or slightly more."""
    rest = list(answers)
    for query in range(len(answers)):
        # Removed from the list, so that an answer is freed when it was sent.
        columns = rest.pop(0)
        yield from _query_parts(columns, query, part_bytes, frame_bytes)


def _query_parts(columns: AnswerColumns, query: int, part_bytes: int, frame_bytes: int) -> Iterator[bytes]:
    out = np.empty(part_bytes + _longest_frame(columns, frame_bytes) + CHUNK_BYTES, dtype=np.uint8)
    series, sample = 0, int(columns.first_sample[0]) if len(columns) else 0
    while series < len(columns):
        series, sample, written = write_frames(
            columns.addresses, len(columns), query, series, sample, out, part_bytes, frame_bytes
        )
        yield out[:written].tobytes()


def _longest_frame(columns: AnswerColumns, frame_bytes: int) -> int:
    """An upper bound of the size of a frame."""
    samples = int(np.diff(columns.first_sample).max(initial=0))
    chunks = -(-samples // CHUNK_SAMPLES) * CHUNK_FIELD_BYTES
    return HEADER + columns.longest_labels + min(chunks, frame_bytes + CHUNK_FIELD_BYTES) + FOOTER
