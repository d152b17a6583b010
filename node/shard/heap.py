"""The C library's heap: kept from holding on to memory that the process no longer uses.

It keeps an arena a thread and gives memory back only from an arena's end. With columns of many megabytes that come and
go on three threads, a shard would keep hundreds of megabytes for nothing. Where there is another C library than GNU's,
nothing happens.
"""

import ctypes
from typing import Final

_ARENAS: Final = 2
_M_ARENA_MAX: Final = -8


def limit_arenas() -> None:
    """Have few arenas; to be called before there are threads."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Give what is free back to the system, from everywhere in the heap. It takes milliseconds."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
