"""What has landed of a job's parts so far, and the progress of the job. Pure.

Cheap for jobs with many parts: of a finished part only the counts are read, not bad records and hours.
"""

from collections.abc import Sequence

import orjson

from strandline.jobs.counts import AttemptCounts, Counts
from strandline.store.bulk_jobs import BulkPart
from strandline.store.jobs import JobState

# A running part never counts as completely done.
_MAX_PARTIAL = 0.99


def landed_of(part: BulkPart) -> Counts:
    """What has landed of a part: its outcome if it is done, else the counts of its last attempt."""
    if part.outcome:
        return Counts(**orjson.loads(part.outcome)["counts"])
    return AttemptCounts.from_json(part.counts).total


def progress_of(states: Sequence[JobState], landed: Sequence[Counts], parts: int) -> float:
    """The share of a job that is done, from 0 to 1. A part that is not done counts by its number of records, relative
    to the mean of the finished parts; it counts as 0 before the first part is done.
    """
    done = [counts.records for state, counts in zip(states, landed, strict=True) if state is JobState.DONE]
    mean = sum(done) / len(done) if done else 0.0
    partial = sum(
        min(_MAX_PARTIAL, counts.records / mean)
        for state, counts in zip(states, landed, strict=True)
        if mean and state is not JobState.DONE
    )
    return min(1.0, (len(done) + partial) / max(1, parts))
