"""How much may wait for Kafka at a time, in bytes: whoever wants in stands in line.

The line is what makes it fair: a large request is not overtaken by small ones for ever, and nobody who came later gets
in first. Whoever has waited for too long goes away without anything.
"""

import asyncio
from collections import deque
from dataclasses import dataclass


class NoRoom(Exception):  # noqa: N818 - it says what is the matter, and never leaves the gateway
    """There was no room in time."""


@dataclass(slots=True, eq=False)
class _Waiting:
    size: int
    admitted: "asyncio.Future[None]"
    is_in: bool = False


class Reservation:
    """Bytes that are taken until they are given back."""

    __slots__ = ("_line", "_size")

    def __init__(self, line: "InFlight", size: int) -> None:
        self._line, self._size = line, size

    def resize(self, size: int) -> None:
        """What was an estimate turns out to be so much. More is never refused: it is there already."""
        before, self._size = self._size, size
        self._line.changed(size - before)

    def release(self) -> None:
        """Give all of it back. May be called again."""
        self.resize(0)


class InFlight:
    """The bytes that are in flight. Belongs to one event loop."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used = limit, 0
        self._line: deque[_Waiting] = deque()

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return len(self._line)

    async def reserve(self, size: int, timeout: float) -> Reservation:
        """Bytes, as soon as there is room and nobody else comes first. What is larger than all the room there is gets
        in when it is alone. Raises `NoRoom`.
        """
        if not self._line and self._fits(size):
            self.used += size
            return Reservation(self, size)
        waiting = _Waiting(size, asyncio.get_running_loop().create_future())
        self._line.append(waiting)
        try:
            async with asyncio.timeout(timeout):
                await waiting.admitted
        except BaseException as error:
            if not waiting.is_in and waiting in self._line:
                self._line.remove(waiting)
            # It may have been let in at the very moment at which it went away. If not, those behind may be smaller.
            self.changed(-size if waiting.is_in else 0)
            if isinstance(error, TimeoutError):
                raise NoRoom from None
            raise
        return Reservation(self, size)

    def changed(self, by: int) -> None:
        """So many bytes more, or fewer, are in use: let in those who have room now, in their order."""
        self.used += by
        while self._line and self._fits(self._line[0].size):
            first = self._line.popleft()
            if not first.admitted.done():
                first.is_in = True
                self.used += first.size
                first.admitted.set_result(None)

    def _fits(self, size: int) -> bool:
        return self.used == 0 or self.used + size <= self.limit
