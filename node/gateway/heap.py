"""Configures malloc for a process that allocates and frees some megabytes with each request.

By default, glibc maps each large block separately and unmaps it when it is freed. The kernel then clears every page
again, which takes as long as processing the request. So freed memory is kept, and returned to the system only
occasionally, when nothing is in flight. With another C library than glibc, this has no effect.
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
# The maximum that glibc accepts.
_MMAP_THRESHOLD: Final = 32 << 20
_TRIM_THRESHOLD: Final = 1 << 30
_TOP_PAD: Final = 16 << 20

_TRIM_INTERVAL_S: Final = 60.0


def configure_malloc() -> None:
    """Let malloc keep freed memory. Call this before threads are started."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_M_ARENA_MAX, _ARENAS)
        library.mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD)
        library.mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD)
        library.mallopt(_M_TOP_PAD, _TOP_PAD)


class MemoryTrimmer:
    """Returns freed memory to the system when the gateway is idle after it has processed requests."""

    def __init__(self) -> None:
        self._bytes_in = 0
        self._trimmed_at = float("-inf")

    def trim_if_idle(self, figures: GatewayFigures, now: float) -> bool:
        """Return memory if the gateway is idle, and return whether that was done. Call this periodically; `now` is
        monotonic time in seconds.
        """
        idle = figures.in_flight_bytes == 0 and figures.waiting_requests == 0
        if not idle or figures.bytes_in == self._bytes_in or now - self._trimmed_at < _TRIM_INTERVAL_S:
            return False
        self._bytes_in, self._trimmed_at = figures.bytes_in, now
        trim_heap()
        return True
