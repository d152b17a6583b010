"""Whether a shard's store answers, by the outcomes of the shard's regular calls.

An owner writes a heartbeat every ten seconds, so a store that answers again is detected within that time.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, cast

from strandline.clock import Clock
from strandline.errors import Retryable

if TYPE_CHECKING:
    # The supervisor imports the figures below, and must not load a store.
    from strandline.store.protocol import Store

Item = TypeVar("Item")
NOT_ANSWERING_S = 30.0
"""A store counts as not answering after this long without an answer."""


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """The name of a store for messages; how many seconds calls have had no answer, 0 while it answers; and the number
    of failed calls since its last answer.
    """

    name: str = ""
    unanswered_s: float = 0.0
    failures: int = 0

    @property
    def is_answering(self) -> bool:
        """Whether it has answered recently, or had no calls."""
        return self.unanswered_s < NOT_ANSWERING_S


class Outcome(Enum):
    """The outcome of a call. OPEN: it has returned, but possibly without an answer of the store."""

    ANSWERED = 1
    FAILED = 2
    OPEN = 3


@dataclass(slots=True)
class StoreCall:
    """A call in progress."""

    outcome: Outcome = Outcome.ANSWERED


class StoreHealth:
    """Counts calls and their outcomes. Thread-safe."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._name, self._clock = name, clock
        self._lock = threading.Lock()
        self._pending = self._failures = 0
        # When the first unanswered call since the last answer began.
        self._unanswered_since: float | None = None

    @contextmanager
    def call(self) -> Iterator[StoreCall]:
        """The context of a call. A `Retryable` error means that there was no answer; any other error is an answer."""
        with self._lock:
            self._pending += 1
            if self._unanswered_since is None:
                self._unanswered_since = self._clock.monotonic()
        call = StoreCall()
        try:
            yield call
        except Retryable:
            call.outcome = Outcome.FAILED
            raise
        finally:
            self._ended(call.outcome)

    def figures(self) -> StoreFigures:
        """The current figures."""
        with self._lock:
            since = self._unanswered_since
            waited = 0.0 if since is None else max(0.0, self._clock.monotonic() - since)
            return StoreFigures(self._name, round(waited, 3), self._failures)

    def _ended(self, outcome: Outcome) -> None:
        with self._lock:
            self._pending -= 1
            if outcome is Outcome.ANSWERED:
                self._failures = 0
                # The store answers, so other pending calls count as waiting from now on.
                self._unanswered_since = self._clock.monotonic() if self._pending else None
            elif outcome is Outcome.FAILED:
                self._failures += 1
            elif not self._pending and not self._failures:
                self._unanswered_since = None


def watched(store: "Store", health: StoreHealth) -> "Store":
    """A wrapper of the store that counts its calls for `health`."""
    return cast("Store", _WatchedStore(store, health))


class _WatchedStore:
    """Forwards all calls by name, so that it does not depend on the methods of `Store`."""

    def __init__(self, store: "Store", health: StoreHealth) -> None:
        self._store, self._health = store, health

    def close(self) -> None:
        self._store.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)

        def call(*arguments: Any, **options: Any) -> Any:
            with self._health.call() as watched_call:
                result = method(*arguments, **options)
                if isinstance(result, Iterator):
                    # The first answer is the first row.
                    watched_call.outcome = Outcome.OPEN
            return self._watched_rows(result) if isinstance(result, Iterator) else result

        setattr(self, name, call)
        return call

    def _watched_rows(self, rows: Iterator[Item]) -> Iterator[Item]:
        """Counts each row as a call."""
        ended = object()
        while True:
            with self._health.call():
                row = next(rows, ended)
            if row is ended:
                return
            yield cast("Item", row)
