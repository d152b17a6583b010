"""What parts of a job have landed so far, and how far the job is. Pure.

Cheap for jobs of many parts: of a part that is done only the counts are read, not its bad records and hours.
"""

from collections.abc import Sequence

import orjson

from strandline.jobs.counts import AttemptCounts, Counts
from strandline.store.bulk_jobs import BulkPart
from strandline.store.jobs import JobState

# A part that is being run counts as done only when it is.
_MAX_SHARE_UNDONE = 0.99


def landed_of(part: BulkPart) -> Counts:
    """What has landed of a part: all of it if it is done, else what its last attempt has counted."""
    if part.outcome:
        return Counts(**orjson.loads(part.outcome)["counts"])
    return AttemptCounts.from_json(part.counts).total


def progress_of(states: Sequence[JobState], landed: Sequence[Counts], parts: int) -> float:
    """The share of a job that is done, from 0 to 1. Parts that are not done count by their records, compared with the
    mean of those that are done; nothing is known of them before the first one is.
    """
    done = [counts.records for state, counts in zip(states, landed, strict=True) if state is JobState.DONE]
    usual = sum(done) / len(done) if done else 0.0
    begun = sum(
        min(_MAX_SHARE_UNDONE, counts.records / usual)
        for state, counts in zip(states, landed, strict=True)
        if usual and state is not JobState.DONE
    )
    return min(1.0, (len(done) + begun) / max(1, parts))
