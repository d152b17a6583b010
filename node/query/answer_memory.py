"""How much memory answers may take at a time: from the first byte that a shard sends until the client has the last.

Clients that read slowly would otherwise hold as much as they like. A query that finds no room is refused, with the
limit's name, and can be repeated.
"""

from collections.abc import Callable

from strandline.errors import Fatal, Retryable

# In bytes: less is not worth looking through the heap for.
_MUCH = 64 << 20


class AnswerMemoryFull(Retryable):
    """Other answers take the memory now."""


class AnswerTooLarge(Fatal):
    """One answer would take more than all of the memory for answers."""


class AnswerMemory:
    """The memory of all answers of a process. It belongs to one event loop."""

    def __init__(self, limit: int, on_emptied: Callable[[], None] = lambda: None) -> None:
        """So many bytes at most. `on_emptied` is called when nothing is taken after much was: what is free can go back
        to the system.
        """
        self.limit, self.used = limit, 0
        self._peak, self._on_emptied = 0, on_emptied

    def change(self, by: int) -> None:
        """So many bytes more, or fewer, are taken. For leases alone."""
        self.used += by
        if self.used > self._peak:
            self._peak = self.used
        elif not self.used and self._peak >= _MUCH:
            self._peak = 0
            self._on_emptied()

    def lease(self) -> "MemoryLease":
        """For one answer; it takes nothing yet."""
        return MemoryLease(self)


class MemoryLease:
    """What one answer takes."""

    __slots__ = ("_memory", "held")

    def __init__(self, memory: AnswerMemory) -> None:
        self._memory, self.held = memory, 0

    @property
    def limit(self) -> int:
        """What all answers together may take."""
        return self._memory.limit

    def grow(self, size: int) -> None:
        """Take so many bytes more. Raises `AnswerMemoryFull` or `AnswerTooLarge`, with nothing taken."""
        memory = self._memory
        if memory.used + size > memory.limit:
            raise self._refusal(size)
        memory.change(size)
        self.held += size

    def hold(self, size: int) -> None:
        """Count so many bytes more that are there already: never refused."""
        self._memory.change(size)
        self.held += size

    def shrink(self, size: int) -> None:
        """Give so many bytes back."""
        self.held -= size
        self._memory.change(-size)

    def part(self) -> "MemoryLease":
        """A lease for one of several things that are fetched at once. It takes nothing yet."""
        return MemoryLease(self._memory)

    def take_over(self, other: "MemoryLease") -> None:
        """Hold what another one held."""
        self.held += other.held
        other.held = 0

    def release(self) -> None:
        """Give all of it back. Releasing twice does nothing."""
        if self.held:
            self.shrink(self.held)

    def _refusal(self, size: int) -> Fatal | Retryable:
        limit = self._memory.limit
        if self.held + size > limit:
            return AnswerTooLarge(
                f"the answer takes more than the {limit:,} bytes that all answers may take together",
                remedy="Ask for fewer series or a shorter time, or raise query.answer_memory",
            )
        return AnswerMemoryFull(
            f"answers that clients have not taken yet fill the {limit:,} bytes of query.answer_memory",
            remedy="Repeat the query in a while, or raise query.answer_memory",
        )
