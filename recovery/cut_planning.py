"""Plans the cuts of complete buckets after the newest cut, up to the pinned end of the log: pure functions.

The owner commits these cuts before anything is replayed. Workers, direct reading and the next owner then use the same
cuts, whatever the clocks show later.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from strandline.arrays import I64s
from strandline.recovery.cutting import NO_TIME, Cutting
from strandline.recovery.log_ends import LogEnds
from strandline.store.rows import CutRow

MAX_PLANNED_BUCKETS = 10_000
"""A plan has at most this many buckets: more than a year of hours, and more than a manifest usually has."""

OffsetAt = Callable[[int], int | None]
_NONE = -1


class PlannedCut(NamedTuple):
    """A complete bucket that has no cut row yet: the offsets from `start` up to, but not including, `end`."""

    bucket: int
    start: int
    end: int

    def row(self, expires: int, lost_to: int | None = None) -> CutRow:
        """The row to commit. Up to `lost_to` the log no longer has records, and an operator has accepted that loss. The
        end is unconfirmed, because the records after it have not been read.
        """
        lost = min(lost_to, self.end) if lost_to is not None and lost_to > self.start else None
        return CutRow(self.bucket, self.start, self.end, expires, lost_to=lost, closed_early=True)


@dataclass(frozen=True, slots=True)
class LogTimes:
    """What the log knows of its records' times. `offset_at` is Kafka's lookup: the first offset whose record time is at
    least the given one, None if there is none. `read` returns offsets and times of the records in a range, in batches.
    """

    offset_at: OffsetAt
    read: Callable[[int, int], Iterable[tuple[I64s, I64s]]]


def planned_cuts(
    known: CutRow,
    ends: LogEnds,
    present: int,
    times: LogTimes,
    cutting: Cutting,
    *,
    read_to: int | None = None,
    max_buckets: int = MAX_PLANNED_BUCKETS,
) -> list[PlannedCut]:
    """The complete buckets after the newest cut, up to the end of the log.

    The caller reads `present` before `ends`, and queries `times` after both. Records up to `read_to` were already put
    into the first bucket, so it does not end before that. The plan stops before a bucket that is not complete: its
    deadline has not passed, or the record that closes it is in an open transaction. A bucket that no record closes ends
    at the end of the log once it is overdue.

    Kafka's lookup finds the first record with some time. If a broker's clock was ahead for a while, the bucket's
    records do not end there. The lookup is unreliable if it returns an offset before the bucket's start, if the same
    record would close several buckets, or if the record's time is ahead of the present. In that case the times are
    read, and a bucket ends after the last record below its deadline.
    """
    cuts: list[PlannedCut] = []
    bucket, start = known.bucket + 1, known.end
    min_end = start if read_to is None else max(start, read_to)
    closing: OffsetAt = cache(times.offset_at)
    is_exact = False
    while len(cuts) < max_buckets and present >= cutting.deadline(bucket):
        found = closing(cutting.deadline(bucket))
        if (
            not is_exact
            and found is not None
            and (found < min_end or _is_unreliable(found, bucket, present, cutting, closing))
        ):
            closing, is_exact = (
                _exact_times(times, (max(min_end, ends.start), ends.last_stable), bucket, present, cutting),
                True,
            )
            continue
        if found is not None and found > ends.last_stable:
            break
        if found is None:
            # No later deadline has a record either.
            closing = _no_record
            # Records after the start of an open transaction can't be read yet, and may belong to the bucket.
            if not cutting.is_overdue(bucket, present) or ends.high > ends.last_stable:
                break
            found = ends.high
        end = max(min_end, found)
        cuts.append(PlannedCut(bucket, start, end))
        bucket, start, min_end = bucket + 1, end, end
    return cuts


def _no_record(_time: int) -> int | None:
    return None


def _is_unreliable(found: int, bucket: int, present: int, cutting: Cutting, offset_at: OffsetAt) -> bool:
    """Whether the record that closes a bucket would also close the next one, or is ahead of the present."""
    following = cutting.deadline(bucket + 1)
    return offset_at(following if present >= following else cutting.ahead_from(present)) == found


def _exact_times(times: LogTimes, where: tuple[int, int], bucket: int, present: int, cutting: Cutting) -> OffsetAt:
    """A lookup by time over the records in a range, for the deadlines from that of `bucket` on. A deadline's record is
    the first one with a time that follows the last record below the deadline; None if there is none. Records without a
    time close nothing: they stay in the bucket of the records before them, as in a shard that reads them.
    """
    start, end = where
    # Up to the present: no later deadline is looked up.
    deadlines = np.arange(cutting.deadline(bucket), present + 1, cutting.flush_interval, dtype=np.int64)
    # By deadline: the last offset of a record below it and not below the deadline before, and the next record's offset.
    last_below = np.full(len(deadlines) + 1, start - 1, dtype=np.int64)
    following = np.full(len(deadlines) + 1, _NONE, dtype=np.int64)
    for offsets, record_times in times.read(start, end):
        has_time = record_times != NO_TIME
        timed = offsets[has_time]
        if len(timed) == 0:
            continue
        following[following == _NONE] = timed[0]
        below = np.searchsorted(deadlines, record_times[has_time], side="right")
        last = np.full(len(last_below), _NONE, dtype=np.int64)
        np.maximum.at(last, below, np.arange(len(timed)))
        hit = np.flatnonzero(last != _NONE)
        last_below[hit] = timed[last[hit]]
        following[hit] = np.append(timed, _NONE)[last[hit] + 1]
    newest = np.maximum.accumulate(last_below[:-1])
    reached = np.maximum.accumulate(np.where(last_below[:-1] == newest, np.arange(len(deadlines)), 0))
    closing = dict(zip(deadlines.tolist(), following[reached].tolist(), strict=True))

    def offset_at(deadline: int) -> int | None:
        return closing[deadline] if closing[deadline] != _NONE else None

    return offset_at
