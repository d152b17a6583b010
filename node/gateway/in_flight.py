"""Limits the bytes of requests in flight. A request that does not fit waits in a FIFO queue.

The queue is fair: small requests can't overtake a large one forever. A request reserves room for its bytes as they
arrive. Requests of which only a part has arrived could block each other forever (a deadlock). Therefore the oldest of
them gets room beyond the limit when no complete request holds any. While complete requests hold room, they will release
it, so the oldest one waits like the others. The limit is thus exceeded by at most the size of one request.
"""

import asyncio
from collections import deque
from dataclasses import dataclass


class NoRoom(Exception):  # noqa: N818 - internal to the gateway
    """No room became free before the timeout."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The use of the room: by requests that are still arriving, and by complete ones, which are being packed or wait
    for Kafka.
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
    """Bytes that are reserved until they are released."""

    __slots__ = ("_in_flight", "_size")

    def __init__(self, in_flight: "InFlight") -> None:
        self._in_flight, self._size = in_flight, 0

    async def grow(self, size: int, timeout: float) -> None:
        """Wait until there is room, and reserve more bytes. Raises `NoRoom`, with nothing more reserved."""
        await self._in_flight.admit(self, size, timeout)
        self._size += size

    def resize(self, size: int) -> None:
        """Set the size of a request that has fully arrived. This never fails, since the bytes are already in memory."""
        before, self._size = self._size, size
        self._in_flight.arrived(self, before, size)

    def release(self) -> None:
        """Release all bytes. May be called again."""
        self.resize(0)


class InFlight:
    """The bytes in flight. For use in one event loop."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used = limit, 0
        self._queue: deque[_Waiting] = deque()
        # Requests that have not fully arrived, oldest first; and the bytes of all others.
        self._arriving: dict[Reservation, None] = {}
        self._arrived = 0

    @property
    def usage(self) -> Usage:
        """The current usage."""
        return Usage(self.limit, len(self._arriving), self.used - self._arrived, self._arrived)

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return len(self._queue)

    async def reserve(self, size: int, timeout: float) -> Reservation:
        """Reserve bytes for a new request when there is room and it is the first in the queue. A request that is larger
        than the limit is admitted when it is alone. Raises `NoRoom`.
        """
        reservation = Reservation(self)
        await reservation.grow(size, timeout)
        self._arriving[reservation] = None
        return reservation

    async def admit(self, reservation: Reservation, size: int, timeout: float) -> None:
        """Let a request reserve more bytes. Only for `Reservation`."""
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
            # It may have been admitted at the moment of the timeout. If not, a smaller request behind it may now fit.
            self._changed(-size if waiting.is_admitted else 0)
            if isinstance(error, TimeoutError):
                raise NoRoom from None
            raise

    def arrived(self, reservation: Reservation, before: int, size: int) -> None:
        """A request has fully arrived, or has ended, and has `size` bytes now. Only for `Reservation`."""
        is_new = reservation in self._arriving
        if is_new:
            del self._arriving[reservation]
        self._arrived += size if is_new else size - before
        self._changed(size - before)

    def _changed(self, by: int) -> None:
        """Admit requests that now fit, in their order, and in any case the oldest one that is still arriving."""
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
