"""Which group of which closed bucket is stored next, and when. Decisions over values.

A group's rows are committed in bucket order. The writes of a bucket are spread over the flush interval, and shards
begin with different groups, so that they don't all write at the same time. A failed group is retried after a pause and
delays no other group. Times are monotonic.
"""

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Queue:
    """The buckets of which one group is not stored yet, oldest first, each with the time at which it is due. If
    `due_since` is set, all of them are due since then.
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
    """The pause after a failure: `minimum`, doubling with each failure up to `maximum`, in milliseconds."""

    minimum: int
    maximum: int

    def after(self, failures: int) -> int:
        """The pause after this many consecutive failures."""
        return min(self.maximum, self.minimum << min(failures - 1, 30))


class FlushSchedule:
    """The groups of closed buckets that are not stored yet. Times are milliseconds from an arbitrary origin."""

    def __init__(self, groups: int, spread_over: int, first_group: int, backoff: Backoff) -> None:
        self._groups = groups
        self._spread_over = spread_over
        self._first_group = first_group
        self._backoff = backoff
        self._queues = [_Queue() for _ in range(groups)]
        self._waiting_groups: dict[int, int] = {}

    def add(self, bucket: int, groups: frozenset[int], now: int, *, urgent: bool) -> None:
        """Add groups of a bucket. A group is due in its slot of the interval, or at once if the bucket is urgent or an
        older bucket of the group still waits, because then the store has fallen behind.
        """
        self._waiting_groups[bucket] = len(groups)
        for group in groups:
            queue = self._queues[group]
            if (urgent or queue.due) and queue.due_since is None:
                queue.due_since = now
            slot = (group - self._first_group) % self._groups
            queue.due.append((bucket, now + self._spread_over * slot // self._groups))

    def make_due(self, now: int) -> None:
        """Make all groups due now. Failed groups still wait for their pause to end."""
        for queue in self._queues:
            if queue.due and queue.due_since is None:
                queue.due_since = now

    def next_due(self, below: int | None = None) -> tuple[int, int, int] | None:
        """The next time, bucket and group, of all buckets or of those below one; None if nothing waits."""
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
        """The group's oldest bucket could not be stored. Returns the pause before the next attempt."""
        queue = self._queues[group]
        queue.failures += 1
        wait = self._backoff.after(queue.failures)
        queue.retry_at = now + wait
        return wait

    def is_stored(self, bucket: int) -> bool:
        """Whether all groups of a bucket are stored. If so, the bucket is removed."""
        if self._waiting_groups.get(bucket, 0) > 0:
            return False
        self._waiting_groups.pop(bucket, None)
        return True
