"""The C library's heap, for a process that takes and gives back some megabytes with each request.

By default large pieces come from the system one by one, and go back to it: every page is then cleared anew, which takes
as long as all the work on it. So they are kept, and given back only now and then, when nothing is in flight. Where
there is another C library than GNU's, nothing happens.
"""

import ctypes
from typing import Final

from strandline.node.gateway.figures import GatewayFigures
from strandline.node.shard.heap import trim_heap

_M_TRIM_THRESHOLD: Final = -1
_M_TOP_PAD: Final = -2
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8

_ARENAS: Final = 2
# The largest that the library takes.
_FROM_HEAP: Final = 32 << 20
_KEPT: Final = 1 << 30
_AHEAD: Final = 16 << 20

_GIVEN_EVERY_S: Final = 60.0


def keep_memory() -> None:
    """Keep what is freed; to be called before there are threads."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_M_ARENA_MAX, _ARENAS)
        library.mallopt(_M_MMAP_THRESHOLD, _FROM_HEAP)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT)
        library.mallopt(_M_TOP_PAD, _AHEAD)


class MemoryKeeper:
    """Gives memory back to the system when the gateway has done something and now has nothing to do."""

    def __init__(self) -> None:
        self._bytes_in = 0
        self._given_at = float("-inf")

    def turn(self, figures: GatewayFigures, now: float) -> bool:
        """Whether it was given back. To be called now and then; `now` in seconds that never go back."""
        idle = figures.in_flight_bytes == 0 and figures.waiting_requests == 0
        if not idle or figures.bytes_in == self._bytes_in or now - self._given_at < _GIVEN_EVERY_S:
            return False
        self._bytes_in, self._given_at = figures.bytes_in, now
        trim_heap()
        return True
