"""What a job leaves for the shard's owner: which segments it wrote, and what it found about their keys.

It is stored as rows under the job's attempt. The row of kind `RESULT` is written last: a job without it is not done,
whatever else it wrote.
"""

from dataclasses import dataclass

from strandline.recovery.replay.record_counts import RecordCounts
from strandline.store.group_write import StoredGroup
from strandline.store.jobs import Job

__all__ = ("FAULTS", "KEYS", "RESULT", "SUMMARY", "JobResult", "StoredGroup", "attempt_of")

RESULT, SUMMARY, KEYS, FAULTS = "result", "summary", "keys", "faults"


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a finished job. `groups` has each group that the job had to write, including those without samples.
    `data_expires` is when its segments expire. `keys` is the number of keys in its summaries, which are in `key_rows`
    rows of each kind; undecodable records are in `fault_rows` rows.
    """

    groups: tuple[StoredGroup, ...]
    counts: RecordCounts
    data_expires: int
    keys: int = 0
    key_rows: int = 0
    fault_rows: int = 0


def attempt_of(job: Job) -> str:
    """The attempt under which a leased job writes. No other lease of it and no other plan has the same."""
    return f"{job.plan}.{job.epoch}"
