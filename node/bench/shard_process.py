"""A real shard in a process of its own, as benchmarks and system tests run it: it can be held still, too."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strandline.clock import Clock
from strandline.node.own_command import WatchedCommand


class ShardProcess(WatchedCommand):
    """`strandline shard`, running. What it says goes to a file beside its status."""

    def __init__(self, shard: int, settings: Path, folder: Path, clock: Clock, extra: tuple[str, ...] = ()) -> None:
        super().__init__(
            ["shard", str(shard), "--config", str(settings), *extra], folder / f"shard-{shard}.json", clock
        )

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Stop its clock, as it were: it does nothing inside, and goes on afterwards."""
        self.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self.send(signal.SIGCONT)
