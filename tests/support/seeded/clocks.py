"""The true time, and the clocks of machines, of which one may be wrong in any way."""

from collections.abc import Callable


class TrueTime:
    """The time of a correct clock, in milliseconds."""

    def __init__(self, start_ms: int) -> None:
        self.start_ms = self.now_ms = start_ms

    def advance(self, milliseconds: int) -> None:
        self.now_ms += milliseconds


class MachineClock:
    """The clock of a machine. Its wall time may jump, drift and stop; its monotonic time is right.

    A process that sleeps on it makes time pass for all, and `on_sleep` lets the others run meanwhile.
    """

    def __init__(self, time: TrueTime, on_sleep: Callable[[], None] = lambda: None) -> None:
        self._time, self._on_sleep = time, on_sleep
        self._offset, self._rate, self._since = 0, 1.0, time.now_ms

    def now_ms(self) -> int:
        return self._since + self._offset + int((self._time.now_ms - self._since) * self._rate)

    def monotonic(self) -> float:
        return (self._time.now_ms - self._time.start_ms) / 1000

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self._time.advance(-int(-seconds * 1000 // 1))
            self._on_sleep()

    def be_wrong(self, offset_ms: int, rate: float = 1.0) -> None:
        """Be wrong by this offset from now on, and run at this rate; a rate of 0 stops the clock."""
        self._since, self._offset, self._rate = self._time.now_ms, offset_ms, rate

    def be_right(self) -> None:
        """Be correct from now on."""
        self.be_wrong(0)
