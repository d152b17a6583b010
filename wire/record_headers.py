"""Headers of the Kafka records that contain remote-write requests."""

from collections.abc import Container

RecordHeaders = list[tuple[str, str | bytes | None]]
"""As Kafka's client accepts them."""

TIMES_HEADER = "strandline-times"
"""Whether the producer has checked the times of the record's samples."""
TIMES_CHECKED = b"checked"
"""They were checked before the record was produced, so no reader drops a sample because of its time."""

CHECKED_HEADERS: RecordHeaders = [(TIMES_HEADER, TIMES_CHECKED)]
"""The headers of a record whose sample times were checked."""

JOB_HEADER, PART_HEADER, CHUNK_HEADER = "strandline-job", "strandline-part", "strandline-chunk"
"""The bulk job, part and chunk that a record belongs to; part and chunk are decimal numbers."""


def are_times_checked(headers: Container[object] | None) -> bool:
    """Whether a record's headers, as pairs of name and bytes, or None, include `TIMES_CHECKED`."""
    return headers is not None and (TIMES_HEADER, TIMES_CHECKED) in headers
