"""Lowers the priority of threads that answer queries, below those that read from Kafka and store."""

import os
import threading
from contextlib import suppress

# Nice levels. When both compete for a processor, a thread with this difference gets a tenth of the other's time.
_NICE_STEP, _MAX_NICE = 10, 19


def lower_priority() -> None:
    """Lower the priority of the calling thread, and of threads that it starts from now on, below that of the process.
    Permanent: raising a priority requires a privilege.
    """
    nice = min(_MAX_NICE, os.getpriority(os.PRIO_PROCESS, os.getpid()) + _NICE_STEP)
    # Linux accepts a thread id here. Elsewhere, the priority does not change.
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)
