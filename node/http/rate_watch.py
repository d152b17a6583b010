"""Whether a client sends, or receives, at the minimum rate. Pure."""


class RateWatch:
    """Measures bytes over windows of time. A window with too few bytes is too slow, even after a fast one."""

    __slots__ = ("_base", "_rate", "_since", "_window_s")

    def __init__(self, rate: int, window_s: float) -> None:
        """The minimum is `rate` bytes per second, over windows of `window_s` seconds."""
        self._rate, self._window_s = rate, window_s
        self._since, self._base = float("-inf"), 0

    def start(self, now: float, count: int) -> None:
        """Start a window. `count` is the total number of bytes so far."""
        self._since, self._base = now, count

    def is_too_slow(self, now: float, count: int) -> bool:
        """Whether the window is over and had too few bytes. If it had enough, the next one starts."""
        elapsed = now - self._since
        if elapsed < self._window_s:
            return False
        if count - self._base < self._rate * elapsed:
            return True
        self.start(now, count)
        return False
