"""Headers of the Kafka records that hold remote-write requests."""

from collections.abc import Container

RecordHeaders = list[tuple[str, str | bytes | None]]
"""As Kafka's client takes them."""

TIMES_HEADER = "strandline-times"
"""Says what the producer has done about the times of a record's samples."""
TIMES_CHECKED = b"checked"
"""They were checked before the record was produced, so no reader drops a sample for its time."""

CHECKED_HEADERS: RecordHeaders = [(TIMES_HEADER, TIMES_CHECKED)]
"""The headers of a record whose samples' times were checked."""

JOB_HEADER, PART_HEADER, CHUNK_HEADER = "strandline-job", "strandline-part", "strandline-chunk"
"""Which chunk of which part of a bulk job a record belongs to; the last two are decimal numbers."""


def are_times_checked(headers: Container[object] | None) -> bool:
    """Whether the headers of a record, pairs of name and bytes or None for none, include the mark."""
    return headers is not None and (TIMES_HEADER, TIMES_CHECKED) in headers
