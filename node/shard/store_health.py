"""Whether a shard's store answers: seen by what becomes of the calls that the shard makes anyway.

An owner writes its heartbeat every ten seconds, so that a store that answers again is known within that time.
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
    # Reports name the figures below, and whoever reads reports must not load a store for that.
    from strandline.store.protocol import Store

Item = TypeVar("Item")
NOT_ANSWERING_S = 30.0
"""After this long without an answer a store counts as one that does not answer."""


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """A store, as people know it; for how many seconds it has been asked without an answer, 0 while it answers; and how
    many calls have failed since its last answer.
    """

    name: str = ""
    unanswered_s: float = 0.0
    failures: int = 0

    @property
    def is_answering(self) -> bool:
        """Whether it has answered lately, or was not asked."""
        return self.unanswered_s < NOT_ANSWERING_S


class Outcome(Enum):
    """What a call came to. OPEN: it has returned, and the store need not have said anything yet."""

    ANSWERED = 1
    FAILED = 2
    OPEN = 3


@dataclass(slots=True)
class StoreCall:
    """A call that is under way."""

    outcome: Outcome = Outcome.ANSWERED


class StoreHealth:
    """Counts calls and their outcomes. Any thread may."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._name, self._clock = name, clock
        self._lock = threading.Lock()
        self._pending = self._failures = 0
        # When the first call began that has no answer, of those since the last answer.
        self._unanswered_since: float | None = None

    @contextmanager
    def call(self) -> Iterator[StoreCall]:
        """Around a call. A `Retryable` is no answer; any other error is one."""
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
        """As of now."""
        with self._lock:
            since = self._unanswered_since
            waited = 0.0 if since is None else max(0.0, self._clock.monotonic() - since)
            return StoreFigures(self._name, round(waited, 3), self._failures)

    def _ended(self, outcome: Outcome) -> None:
        with self._lock:
            self._pending -= 1
            if outcome is Outcome.ANSWERED:
                self._failures = 0
                # Other calls wait from now on: the store answers.
                self._unanswered_since = self._clock.monotonic() if self._pending else None
            elif outcome is Outcome.FAILED:
                self._failures += 1
            elif not self._pending and not self._failures:
                self._unanswered_since = None


def watched(store: "Store", health: StoreHealth) -> "Store":
    """The same store, whose calls count for its health."""
    return cast("Store", _WatchedStore(store, health))


class _WatchedStore:
    """Passes every call on. By name, so that it knows nothing of what stores can do."""

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
                    # The first row is the first answer.
                    watched_call.outcome = Outcome.OPEN
            return self._watched_rows(result) if isinstance(result, Iterator) else result

        setattr(self, name, call)
        return call

    def _watched_rows(self, rows: Iterator[Item]) -> Iterator[Item]:
        """Rows that the store is asked for one after the other."""
        ended = object()
        while True:
            with self._health.call():
                row = next(rows, ended)
            if row is ended:
                return
            yield cast("Item", row)
