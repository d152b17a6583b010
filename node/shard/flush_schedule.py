"""Which group of which closed bucket is stored next, and when: decisions over values.

A group's rows are committed in bucket order. The writes of a bucket are spread over the interval, each shard beginning
with another group, so that shards do not all write at the same moment. A group that failed waits, and holds back no
other one. Times are those of a clock that never goes back.
"""

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Queue:
    """The buckets that wait for one group, oldest first, each with the time at which it is due. All of them are due
    since `due_since`, if the queue is in a make_due.
    """

    due: deque[tuple[int, int]] = field(default_factory=deque)
    due_since: int | None = None
    failures: int = 0
    retry_at: int = 0

    def next_due(self) -> int:
        due = self.due[0][1]
        return due if self.due_since is None else min(due, self.due_since)


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a failed piece of work waits: `minimum`, doubling with each failure up to `maximum`, in milliseconds."""

    minimum: int
    maximum: int

    def after(self, failures: int) -> int:
        """The wait behind so many failures in a row."""
        return min(self.maximum, self.minimum << min(failures - 1, 30))


class FlushSchedule:
    """What waits. Times are milliseconds, since whatever moment."""

    def __init__(self, groups: int, spread_over: int, first_group: int, backoff: Backoff) -> None:
        self._groups = groups
        self._spread_over = spread_over
        self._first_group = first_group
        self._backoff = backoff
        self._queues = [_Queue() for _ in range(groups)]
        self._waiting_groups: dict[int, int] = {}

    def add(self, bucket: int, groups: frozenset[int], now: int, *, urgent: bool) -> None:
        """Let groups of a bucket wait their turn; all at once if it is urgent or if others wait already, since then
        the store has fallen behind.
        """
        self._waiting_groups[bucket] = len(groups)
        for group in groups:
            queue = self._queues[group]
            if (urgent or queue.due) and queue.due_since is None:
                queue.due_since = now
            slot = (group - self._first_group) % self._groups
            queue.due.append((bucket, now + self._spread_over * slot // self._groups))

    def make_due(self, now: int) -> None:
        """Let everything be due now, but for what has failed and waits for that."""
        for queue in self._queues:
            if queue.due and queue.due_since is None:
                queue.due_since = now

    def next_due(self, below: int | None = None) -> tuple[int, int, int] | None:
        """When, which bucket and which group comes next, of all buckets or those below one; None if nothing waits."""
        waiting = [
            (max(queue.next_due(), queue.retry_at), queue.due[0][0], group)
            for group, queue in enumerate(self._queues)
            if queue.due and (below is None or queue.due[0][0] < below)
        ]
        return min(waiting, default=None)

    def due_of(self, bucket: int, now: int) -> list[int]:
        """The groups that are due now and whose oldest bucket is this one."""
        return [
            group
            for group, queue in enumerate(self._queues)
            if queue.due and queue.due[0][0] == bucket and max(queue.next_due(), queue.retry_at) <= now
        ]

    def done(self, group: int) -> None:
        """The group's oldest bucket is stored."""
        queue = self._queues[group]
        bucket, _ = queue.due.popleft()
        self._waiting_groups[bucket] -= 1
        queue.failures = queue.retry_at = 0
        if not queue.due:
            queue.due_since = None

    def failed(self, group: int, now: int) -> int:
        """The group's oldest bucket could not be stored now; how long it waits."""
        queue = self._queues[group]
        queue.failures += 1
        wait = self._backoff.after(queue.failures)
        queue.retry_at = now + wait
        return wait

    def is_stored(self, bucket: int) -> bool:
        """Whether no group of a bucket waits any more; from then on it is forgotten."""
        if self._waiting_groups.get(bucket, 0) > 0:
            return False
        self._waiting_groups.pop(bucket, None)
        return True
