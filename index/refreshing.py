"""Near-real-time refresh: what was added or deleted is seen by searches after a bounded time.

A refresh makes a segment of whatever has come since the one before, so one after every batch would leave Lucene busy
with merging crumbs, and one now and then would let readers wait. Here the bound decides: the first change that searches
do not see yet starts the clock, and all that came until a refresh are seen by it.
"""

import threading
from typing import Protocol

from strandline.clock import Clock
from strandline.errors import Fatal

DEFAULT_BOUND = 1.0


class InvalidBound(Fatal):
    """A bound that no refresh could keep."""


class Refreshable(Protocol):
    """An index whose searches see what it held at the last refresh: a `PartKeyIndex`."""

    def refresh(self) -> None:
        """Let searches see everything that was added or deleted before this call."""
        ...


class BoundedRefresh:
    """Refreshes one index. Its writer calls `changed` and `refresh_if_due` in its loop; other threads may call
    anything but `changed`.

    A change is seen `bound` seconds after it was told of, plus the time until `refresh_if_due` is next called, plus
    that of the refresh itself. A refresh that fails raises, and leaves what it should have shown unseen: the next call
    that is due tries again, and `lag` goes on growing. A refresh from elsewhere does no harm: ours then finds nothing
    new.
    """

    def __init__(self, index: Refreshable, clock: Clock, bound: float = DEFAULT_BOUND) -> None:
        """Everything that is in the index by now counts as seen."""
        if not 0 <= bound < float("inf"):
            raise InvalidBound(
                f"searches can't see changes after {bound} seconds", remedy="Give a number of seconds, 0 or more"
            )
        self._index = index
        self._clock = clock
        self._bound = bound
        # Held throughout a refresh, so that two never run at the same time; `_state` only for a few lines.
        self._refreshing = threading.Lock()
        self._state = threading.Lock()
        # When the oldest change was told of that is not known to be seen; and the oldest one since the last refresh
        # began, which that refresh may have missed.
        self._unseen_since: float | None = None
        self._missed_since: float | None = None

    def changed(self) -> None:
        """Something was added or deleted. Called by the writer, after it was."""
        now = self._clock.monotonic()
        with self._state:
            if self._unseen_since is None:
                self._unseen_since = now
            if self._missed_since is None:
                self._missed_since = now

    def lag(self) -> float:
        """For how many seconds the oldest change that searches do not see has waited; 0 if they see all of them."""
        with self._state:
            since = self._unseen_since
        return 0.0 if since is None else self._clock.monotonic() - since

    def is_due(self) -> bool:
        """Whether a change is unseen that has waited for the bound. It asks nothing of the index."""
        with self._state:
            since = self._unseen_since
        return since is not None and self._clock.monotonic() - since >= self._bound

    def refresh_if_due(self) -> bool:
        """Refresh if a change has waited for the bound; whether it did. It costs next to nothing if none has."""
        if not self.is_due():
            return False
        with self._refreshing:
            # Another thread's refresh, which this one waited for, may have shown the change.
            if not self.is_due():
                return False
            self._refresh()
        return True

    def refresh_now(self) -> None:
        """Refresh, due or not: everything that was added or deleted before this call is seen after it."""
        with self._refreshing:
            self._refresh()

    def _refresh(self) -> None:
        with self._state:
            self._missed_since = None
        self._index.refresh()
        with self._state:
            self._unseen_since = self._missed_since
