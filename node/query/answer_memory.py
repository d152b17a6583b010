"""Limits the memory of answers (`query.answer_memory`): from the first byte that a shard sends until the client has
received the last.

Without a limit, clients that read slowly could hold any amount of memory. A query that exceeds the limit is refused,
and can be repeated.
"""

from collections.abc import Callable

from strandline.errors import Fatal, Retryable

# Bytes. After a smaller peak, returning free memory to the system is not worth a scan of the heap.
_MIN_PEAK = 64 << 20


class AnswerMemoryFull(Retryable):
    """Other answers use the memory now."""


class AnswerTooLarge(Fatal):
    """One answer alone would exceed the limit."""


class AnswerMemory:
    """The memory of all answers of a process. For one event loop."""

    def __init__(self, limit: int, on_emptied: Callable[[], None] = lambda: None) -> None:
        """`limit` is in bytes. `on_emptied` is called when nothing is used after a high peak, to return free memory to
        the system.
        """
        self.limit, self.used = limit, 0
        self._peak, self._on_emptied = 0, on_emptied

    def change(self, by: int) -> None:
        """Change the used bytes by `by`. Called by leases only."""
        self.used += by
        if self.used > self._peak:
            self._peak = self.used
        elif not self.used and self._peak >= _MIN_PEAK:
            self._peak = 0
            self._on_emptied()

    def lease(self) -> "MemoryLease":
        """A lease for one answer, with nothing taken yet."""
        return MemoryLease(self)


class MemoryLease:
    """The memory that one answer takes."""

    __slots__ = ("_memory", "held")

    def __init__(self, memory: AnswerMemory) -> None:
        self._memory, self.held = memory, 0

    @property
    def limit(self) -> int:
        """The limit on all answers together, in bytes."""
        return self._memory.limit

    def grow(self, size: int) -> None:
        """Take `size` more bytes. Raises `AnswerMemoryFull` or `AnswerTooLarge`, and takes nothing then."""
        memory = self._memory
        if memory.used + size > memory.limit:
            raise self._refusal(size)
        memory.change(size)
        self.held += size

    def hold(self, size: int) -> None:
        """Count `size` bytes that are in memory already. Never refused."""
        self._memory.change(size)
        self.held += size

    def shrink(self, size: int) -> None:
        """Give `size` bytes back."""
        self.held -= size
        self._memory.change(-size)

    def part(self) -> "MemoryLease":
        """A lease for one of several parts that are fetched concurrently, with nothing taken yet."""
        return MemoryLease(self._memory)

    def take_over(self, other: "MemoryLease") -> None:
        """Take over what another lease holds."""
        self.held += other.held
        other.held = 0

    def release(self) -> None:
        """Give everything back. Idempotent."""
        if self.held:
            self.shrink(self.held)

    def _refusal(self, size: int) -> Fatal | Retryable:
        limit = self._memory.limit
        if self.held + size > limit:
            return AnswerTooLarge(
                f"the answer takes more than the {limit:,} bytes that all answers together may use",
                remedy="Select fewer series or a shorter time range, or raise query.answer_memory",
            )
        return AnswerMemoryFull(
            f"answers that clients have not received yet use the {limit:,} bytes of query.answer_memory",
            remedy="Repeat the query later, or raise query.answer_memory",
        )
