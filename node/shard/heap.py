"""Makes the C library return unused heap memory to the operating system.

glibc has an arena for each thread and returns memory only from the end of an arena. A shard allocates and frees columns
of many megabytes on three threads, and would keep hundreds of megabytes unused. With other C libraries, nothing
happens.
"""

import ctypes
from typing import Final

_ARENAS: Final = 2
_M_ARENA_MAX: Final = -8


def limit_arenas() -> None:
    """Limit the number of arenas. Call it before starting threads."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_M_ARENA_MAX, _ARENAS)


def trim_heap() -> None:
    """Return free memory from all parts of the heap to the operating system. Takes milliseconds."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
