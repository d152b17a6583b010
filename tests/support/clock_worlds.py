"""A world in which every machine has its own clock: the node, the store's server and the brokers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from strandline.clock import ManualClock
from support.shard_world import METRICS, START, World


class SkewedClock(ManualClock):
    """The wall clock is off by `offset`; the monotonic clock is right."""

    offset = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.offset

    def true_ms(self) -> int:
        """The time of a correct clock."""
        return super().now_ms()


class _ServerClock:
    """The wall clock of another machine, off by `offset`."""

    def __init__(self, true_ms: Callable[[], int], sleep: Callable[[float], None]) -> None:
        self.offset = 0
        self._true_ms, self.sleep = true_ms, sleep

    def now_ms(self) -> int:
        return self._true_ms() + self.offset

    def monotonic(self) -> float:
        return self._true_ms() / 1000


class ClocksWorld(World):
    """Clocks are wrong by `node_ahead`, `store_ahead` and `brokers_ahead` milliseconds. Samples carry the true time."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.node_clock = SkewedClock(START)
        self.server_clock = _ServerClock(self.node_clock.true_ms, self.node_clock.sleep)
        super().__init__(folder, clock=self.node_clock, store_clock=self.server_clock, **changes)
        self.brokers_ahead = 0

    @property
    def true_ms(self) -> int:
        """The time of a correct clock."""
        return self.node_clock.true_ms()

    def set_node_ahead(self, milliseconds: int) -> None:
        """Make the node's clock wrong."""
        self.node_clock.offset = milliseconds

    def set_store_ahead(self, milliseconds: int) -> None:
        """Make the clock of the store's server wrong."""
        self.server_clock.offset = milliseconds

    def scrape(self, name: str = "a", value: float = 1.0) -> None:
        """Produce one record with a sample of each metric, with the current time."""
        time = self.true_ms
        # `late` is relative to the node's clock.
        late = self.clock.now_ms() - (time + self.brokers_ahead)
        self.produce(*((metric, name, time, value) for metric in METRICS), late=late)

    def live_through(self, minutes: int, every: int = 10) -> None:
        """Let time pass, with a scrape at each interval, and a shard that keeps up."""
        for _ in range(0, minutes, every):
            self.pass_time(every * 60_000)
            self.scrape()
            self.settle()
