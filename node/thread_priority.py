"""Threads that answer queries give way to those that read and store."""

import os
import threading
from contextlib import suppress

# In steps of nice. Where both want a processor, the kernel gives a thread this much less urgent a tenth of the other's.
_NICE_STEP, _MAX_NICE = 10, 19


def lower_priority() -> None:
    """Make the calling thread, and those that it starts from now on, less urgent than the process. It stays so: going
    back would take a privilege.
    """
    nice = min(_MAX_NICE, os.getpriority(os.PRIO_PROCESS, os.getpid()) + _NICE_STEP)
    # Linux takes the id of a thread here, too. Where it does not, all threads are as urgent as before.
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)
