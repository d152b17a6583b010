"""A store as one process sees it: at any call, the process may die, stall, or lose the answer."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from strandline.store.protocol import StoreUnavailable
from support.memory_store import MemoryStore
from support.seeded.violations import Crash


class Kind(StrEnum):
    """The kinds of faults."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOSE_ANSWER = "lose the answer"
    STALL = "stall"


@dataclass
class Fault:
    """A fault at the call at which `calls_left` has counted down."""

    kind: Kind
    calls_left: int


class HookedStore:
    """Forwards calls. A dead process makes none."""

    def __init__(
        self,
        store: MemoryStore,
        is_away: Callable[[], bool],
        stall: Callable[[], None],
        called: Callable[[str, tuple[Any, ...]], None],
    ) -> None:
        """`stall` is called when the process stalls, and returns when it continues. `called` is called after each
        executed call.
        """
        self._store, self._is_away, self._stall, self._called = store, is_away, stall, called
        self.fault: Fault | None = None
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        def hooked(*arguments: Any, **options: Any) -> Any:
            kind = self._next_fault() if self.fault is not None else None
            if kind is Kind.CRASH_BEFORE:
                self.is_dead = True
            if self.is_dead:
                raise Crash
            if self._is_away():
                raise StoreUnavailable("the store is away")
            if kind is Kind.STALL:
                self._stall()
            result = call(*arguments, **options)
            self._called(name, arguments)
            if kind is Kind.CRASH_AFTER:
                self.is_dead = True
                raise Crash
            if kind is Kind.LOSE_ANSWER:
                raise StoreUnavailable("the answer was lost")
            return result

        self.__dict__[name] = hooked
        return hooked

    def _next_fault(self) -> Kind | None:
        fault = self.fault
        if fault is None:
            return None
        fault.calls_left -= 1
        if fault.calls_left > 0:
            return None
        self.fault = None
        return fault.kind
