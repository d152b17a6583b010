"""A Kafka that keeps its connections and answers nothing."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.node.stack import Stack
from support.real_kafka import eventually


@contextmanager
def hanging(stack: Stack, server: int = 0) -> Iterator[None]:
    """Inside, it does; or another server of the stack does."""
    pid = stack.record.servers[server].process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        # Its threads go on for a moment.
        eventually(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
