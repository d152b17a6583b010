"""Threads that answer queries give way to those that read and store."""

import os
import threading
from contextlib import suppress

# In steps of nice. Where both want a processor, the kernel gives a thread this much less urgent a tenth of the other's.
_LESS_URGENT, _LEAST_URGENT = 10, 19


def lower_priority() -> None:
    """Make the calling thread, and those that it starts from now on, less urgent than the process. It stays so: going
    back would take a privilege.
    """
    urgency = min(_LEAST_URGENT, os.getpriority(os.PRIO_PROCESS, os.getpid()) + _LESS_URGENT)
    # Linux takes the id of a thread here, too. Where it does not, all threads are as urgent as before.
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), urgency)
