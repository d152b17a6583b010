"""Near-real-time refresh: searches see additions and deletions after a bounded delay.

A refresh makes a segment of what was added since the previous one. A refresh after each batch would keep Lucene busy
merging tiny segments, and rare refreshes would delay readers. So a refresh is due when the oldest change that searches
don't see has waited for the bound, and shows all changes up to then.
"""

import threading
from typing import Protocol

from strandline.clock import Clock
from strandline.errors import Fatal

DEFAULT_BOUND = 1.0


class InvalidBound(Fatal):
    """A bound that no refresh can meet."""


class Refreshable(Protocol):
    """An index whose searches see its state at the last refresh: a `PartKeyIndex`."""

    def refresh(self) -> None:
        """Make all additions and deletions before this call visible to searches."""
        ...


class BoundedRefresh:
    """Refreshes one index. Its writer calls `changed` and `refresh_if_due` in its loop; other threads may call anything
    but `changed`.

    A change is visible `bound` seconds after `changed`, plus the time until the next call of `refresh_if_due`, plus the
    duration of the refresh. A refresh that fails raises, and its changes stay invisible: the next call that is due
    tries again, and `lag` keeps growing. A refresh elsewhere is harmless: the next one here then finds nothing new.
    """

    def __init__(self, index: Refreshable, clock: Clock, bound: float = DEFAULT_BOUND) -> None:
        """Everything that is in the index at this moment counts as visible."""
        if not 0 <= bound < float("inf"):
            raise InvalidBound(
                f"the refresh bound must be a non-negative number of seconds, not {bound}",
                remedy="Use 0 or more seconds",
            )
        self._index = index
        self._clock = clock
        self._bound = bound
        # Held during a refresh, so that there is one at a time; `_state` is only held for a few lines.
        self._refreshing = threading.Lock()
        self._state = threading.Lock()
        # The time of the oldest change that is not known to be visible, and of the oldest one since the last refresh
        # began, which that refresh may have missed.
        self._unseen_since: float | None = None
        self._missed_since: float | None = None

    def changed(self) -> None:
        """Note that something was added or deleted. Called by the writer, afterwards."""
        now = self._clock.monotonic()
        with self._state:
            if self._unseen_since is None:
                self._unseen_since = now
            if self._missed_since is None:
                self._missed_since = now

    def lag(self) -> float:
        """The age in seconds of the oldest change that searches don't see; 0 if they see all."""
        with self._state:
            since = self._unseen_since
        return 0.0 if since is None else self._clock.monotonic() - since

    def is_due(self) -> bool:
        """Whether a change has been invisible for the bound. It does not access the index."""
        with self._state:
            since = self._unseen_since
        return since is not None and self._clock.monotonic() - since >= self._bound

    def refresh_if_due(self) -> bool:
        """Refresh if a change has been invisible for the bound; return whether it did. A call that is not due costs
        almost nothing.
        """
        if not self.is_due():
            return False
        with self._refreshing:
            # Another thread's refresh, for which this one waited, may have shown the change.
            if not self.is_due():
                return False
            self._refresh()
        return True

    def refresh_now(self) -> None:
        """Refresh unconditionally: all additions and deletions before this call are visible after it."""
        with self._refreshing:
            self._refresh()

    def _refresh(self) -> None:
        with self._state:
            self._missed_since = None
        self._index.refresh()
        with self._state:
            self._unseen_since = self._missed_since
