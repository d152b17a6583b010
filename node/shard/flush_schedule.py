"""Which group of which closed bucket is stored next, and when: decisions over values.

A group's rows are committed in bucket order. The writes of a bucket are spread over the interval, each shard beginning
with another group, so that shards do not all write at the same moment. A group that failed waits, and holds back no
other one. Times are those of a clock that never goes back.
"""

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Queue:
    """The buckets that wait for one group, oldest first, each with the time at which it is due."""

    due: deque[tuple[int, int]] = field(default_factory=deque)
    failures: int = 0
    not_before: int = 0


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a failed piece of work waits: `least`, doubling with each failure up to `most`, in milliseconds."""

    least: int
    most: int

    def after(self, failures: int) -> int:
        """The wait behind so many failures in a row."""
        return min(self.most, self.least << min(failures - 1, 30))


class FlushSchedule:
    """What waits. Times are milliseconds, since whatever moment."""

    def __init__(self, groups: int, spread_over: int, first_group: int, backoff: Backoff) -> None:
        self._groups = groups
        self._spread_over = spread_over
        self._first_group = first_group
        self._backoff = backoff
        self._queues = [_Queue() for _ in range(groups)]

    def add(self, bucket: int, groups: frozenset[int], now: int, *, urgent: bool) -> None:
        """Let groups of a bucket wait their turn; all at once if it is urgent or if others wait already, since then
        the store has fallen behind.
        """
        for group in groups:
            queue = self._queues[group]
            turn = (group - self._first_group) % self._groups
            hurry = urgent or bool(queue.due)
            if queue.due:
                queue.due = deque((waiting, min(due, now)) for waiting, due in queue.due)
            queue.due.append((bucket, now if hurry else now + self._spread_over * turn // self._groups))

    def hurry(self) -> None:
        """Let everything be due now, but for what has failed and waits for that."""
        for queue in self._queues:
            queue.due = deque((bucket, 0) for bucket, _ in queue.due)

    def next_due(self, below: int | None = None) -> tuple[int, int, int] | None:
        """When, which bucket and which group comes next, of all buckets or those below one; None if nothing waits."""
        waiting = [
            (max(queue.due[0][1], queue.not_before), queue.due[0][0], group)
            for group, queue in enumerate(self._queues)
            if queue.due and (below is None or queue.due[0][0] < below)
        ]
        return min(waiting, default=None)

    def done(self, group: int) -> None:
        """The group's oldest bucket is stored."""
        queue = self._queues[group]
        queue.due.popleft()
        queue.failures = queue.not_before = 0

    def failed(self, group: int, now: int) -> int:
        """The group's oldest bucket could not be stored now; how long it waits."""
        queue = self._queues[group]
        queue.failures += 1
        wait = self._backoff.after(queue.failures)
        queue.not_before = now + wait
        return wait

    def waiting(self, bucket: int) -> frozenset[int]:
        """The groups of a bucket that are not stored."""
        return frozenset(
            group for group, queue in enumerate(self._queues) if any(one == bucket for one, _ in queue.due)
        )
