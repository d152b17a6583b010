"""Runs a real shard in its own process, for benchmarks and system tests, which can also suspend it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.clock import Clock
from strandline.node.own_command import WatchedCommand


class ShardProcess(WatchedCommand):
    """A running `strandline shard`. Its output goes to a file next to its status file."""

    def __init__(self, shard: int, settings: Path, folder: Path, clock: Clock, extra: tuple[str, ...] = ()) -> None:
        super().__init__(
            ["shard", str(shard), "--config", str(settings), *extra], folder / f"shard-{shard}.json", clock
        )

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the process in this block, with SIGSTOP and SIGCONT."""
        self.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self.send(signal.SIGCONT)
