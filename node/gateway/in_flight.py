"""How much may wait for Kafka at a time, in bytes: a request that finds no room waits in line.

The line makes it fair: a large request is not overtaken by small ones for ever, and a later one does not get in first.
A request takes room for its bytes as they arrive. Requests that have arrived in part could block each other for ever:
so the oldest of them gets room once no request that has arrived as a whole takes any. While some do, room is about to
be made, and it waits as all others. In this way the limit is exceeded by no more than the size of one request.
"""

import asyncio
from collections import deque
from dataclasses import dataclass


class NoRoom(Exception):  # noqa: N818 - it says what is the matter, and never leaves the gateway
    """There was no room in time."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What takes the room: requests that are still arriving, and those that have arrived and are packed, or wait for
    Kafka.
    """

    limit: int
    arriving_requests: int
    arriving_bytes: int
    arrived_bytes: int


@dataclass(slots=True, eq=False)
class _Waiting:
    size: int
    reservation: "Reservation"
    admitted: "asyncio.Future[None]"
    is_admitted: bool = False


class Reservation:
    """Bytes that are taken until they are given back."""

    __slots__ = ("_in_flight", "_size")

    def __init__(self, in_flight: "InFlight") -> None:
        self._in_flight, self._size = in_flight, 0

    async def grow(self, size: int, timeout: float) -> None:
        """Take more bytes, as soon as there is room. Raises `NoRoom`, with nothing taken."""
        await self._in_flight.admit(self, size, timeout)
        self._size += size

    def resize(self, size: int) -> None:
        """All of it has arrived, and turns out to be so much. More is never refused: it is there already."""
        before, self._size = self._size, size
        self._in_flight.arrived(self, before, size)

    def release(self) -> None:
        """Give all of it back. May be called again."""
        self.resize(0)


class InFlight:
    """The bytes that are in flight. Belongs to one event loop."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used = limit, 0
        self._queue: deque[_Waiting] = deque()
        # Requests of which not all has arrived, oldest first; and what all others take.
        self._arriving: dict[Reservation, None] = {}
        self._arrived = 0

    @property
    def usage(self) -> Usage:
        """As of now."""
        return Usage(self.limit, len(self._arriving), self.used - self._arrived, self._arrived)

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._queue)

    async def reserve(self, size: int, timeout: float) -> Reservation:
        """Bytes for a new request, as soon as there is room and no other comes first. What is larger than all the room
        there is gets in when it is alone. Raises `NoRoom`.
        """
        reservation = Reservation(self)
        await reservation.grow(size, timeout)
        self._arriving[reservation] = None
        return reservation

    async def admit(self, reservation: Reservation, size: int, timeout: float) -> None:
        """Let a request take more bytes. For `Reservation` alone."""
        if self._fits(size, reservation) and (not self._queue or self._is_oldest(reservation)):
            self.used += size
            return
        waiting = _Waiting(size, reservation, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        try:
            async with asyncio.timeout(timeout):
                await waiting.admitted
        except BaseException as error:
            if not waiting.is_admitted and waiting in self._queue:
                self._queue.remove(waiting)
            # It may have been let in at the very moment at which it gave up. If not, those behind may be smaller.
            self._changed(-size if waiting.is_admitted else 0)
            if isinstance(error, TimeoutError):
                raise NoRoom from None
            raise

    def arrived(self, reservation: Reservation, before: int, size: int) -> None:
        """All of a request is here, or it has ended; it takes `size` bytes now. For `Reservation` alone."""
        is_new = reservation in self._arriving
        if is_new:
            del self._arriving[reservation]
        self._arrived += size if is_new else size - before
        self._changed(size - before)

    def _changed(self, by: int) -> None:
        """Let in those that have room now, in their order, and the oldest one that is still arriving before others."""
        self.used += by
        while self._queue and self._fits(self._queue[0].size, self._queue[0].reservation):
            self._admit(self._queue.popleft())
        oldest = next((one for one in self._queue if self._is_oldest(one.reservation)), None)
        if oldest is not None and self._fits(oldest.size, oldest.reservation):
            self._queue.remove(oldest)
            self._admit(oldest)

    def _admit(self, waiting: _Waiting) -> None:
        if not waiting.admitted.done():
            waiting.is_admitted = True
            self.used += waiting.size
            waiting.admitted.set_result(None)

    def _is_oldest(self, reservation: Reservation) -> bool:
        return next(iter(self._arriving), None) is reservation

    def _fits(self, size: int, reservation: Reservation) -> bool:
        if self.used == 0 or self.used + size <= self.limit:
            return True
        return self._arrived == 0 and self._is_oldest(reservation)
