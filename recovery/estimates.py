"""Estimates of a replay before it runs: records, bytes, seconds, and where the index comes from."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from strandline.store.jobs import Job


class IndexSource(StrEnum):
    """Where a shard's index comes from at its start. Later buckets always come from a replay. `IN_USE` is a local copy
    that a running shard has open.
    """

    LOCAL_COPY = "local copy"
    IN_USE = "local copy, in use"
    BUCKETS = "buckets"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True)
class Rates:
    """Assumed speed of a replay: bytes of records per second by all workers, and the seconds that a session takes to
    start. The defaults are rough estimates for two cores.
    """

    bytes_per_second: float = 20e6
    start_seconds: float = 6.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """Offsets to read, the bytes of their records, and the seconds this takes. `bytes` and `seconds` are None if no
    record could be sampled.
    """

    records: int
    bytes: int | None
    seconds: float | None

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(
            self.records + other.records,
            None if self.bytes is None or other.bytes is None else self.bytes + other.bytes,
            None if self.seconds is None or other.seconds is None else self.seconds + other.seconds,
        )


NOTHING = Estimate(0, 0, 0.0)


def estimate(jobs: Iterable[Job], bytes_per_record: float | None, rates: Rates) -> Estimate:
    """The estimate for some jobs, from the mean size of records sampled in their range. It excludes the start of the
    session, which all jobs share.
    """
    records = sum(job.end - job.start for job in jobs)
    if not records:
        return NOTHING
    if bytes_per_record is None:
        return Estimate(records, None, None)
    size = round(records * bytes_per_record)
    return Estimate(records, size, size / rates.bytes_per_second)


def total_seconds(total: Estimate, rates: Rates) -> float | None:
    """The seconds that a replay takes, including the start of its session; 0 if there is nothing to replay."""
    if total.records == 0:
        return 0.0
    return None if total.seconds is None else rates.start_seconds + total.seconds


def sample_offsets(jobs: Iterable[Job], max_offsets: int = 8) -> list[int]:
    """Up to `max_offsets` offsets spread over the ranges of jobs, at which to sample a record."""
    ranges = [(job.start, job.end) for job in jobs if job.end > job.start]
    total = sum(end - start for start, end in ranges)
    wanted = (
        [number * total // max_offsets for number in range(min(max_offsets, total))]
        if total > max_offsets
        else list(range(total))
    )
    found: list[int] = []
    passed = 0
    for start, end in ranges:
        length = end - start
        found += [start + position - passed for position in wanted if passed <= position < passed + length]
        passed += length
    return found
