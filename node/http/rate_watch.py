"""Whether a client sends, or takes, fast enough. Pure."""


class RateWatch:
    """Counts bytes over windows of time. Each window in which too few passed is too slow; a fast one before it does not
    make up for that.
    """

    __slots__ = ("_base", "_rate", "_since", "_window_s")

    def __init__(self, rate: int, window_s: float) -> None:
        """`rate` bytes a second at least, over `window_s` seconds."""
        self._rate, self._window_s = rate, window_s
        self._since, self._base = float("-inf"), 0

    def start(self, now: float, count: int) -> None:
        """A window begins; so many bytes have passed in all."""
        self._since, self._base = now, count

    def is_too_slow(self, now: float, count: int) -> bool:
        """Whether the window is over and too few bytes have passed in it. If enough have, the next one begins."""
        elapsed = now - self._since
        if elapsed < self._window_s:
            return False
        if count - self._base < self._rate * elapsed:
            return True
        self.start(now, count)
        return False
