"""Calls a store from an event loop: in one thread, with a timeout per call."""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from strandline.errors import Retryable
from strandline.store.protocol import StoreUnavailable

Opened = TypeVar("Opened")
Result = TypeVar("Result")

_MAX_WAITING = 32
_END_S = 5.0


class StoreDoesNotAnswer(Retryable):
    """A call to the store timed out or failed, or too many calls are waiting."""


@dataclass(frozen=True, slots=True)
class _Call(Generic[Opened]):
    work: Callable[[Opened], Any]
    answer: "asyncio.Future[Any]"


class StoreThread(Generic[Opened]):
    """Makes one call at a time. The first call opens the store; if this fails, the next call tries again. Used by one
    event loop. A hanging call does not block the end of the process.
    """

    def __init__(
        self, opener: Callable[[], AbstractContextManager[Opened]], store: str, *, timeout_s: float = 10.0
    ) -> None:
        """`store` is its name in messages. A caller waits at most `timeout_s`."""
        self._opener, self._store, self._timeout_s = opener, store, timeout_s
        self._calls: queue.SimpleQueue[_Call[Opened] | None] = queue.SimpleQueue()
        self._waiting = 0
        self._thread: threading.Thread | None = None

    async def call(self, work: Callable[[Opened], Result]) -> Result:
        """The result of a call. Raises `StoreDoesNotAnswer`, and what the call raises. A call that times out before it
        was started is not made; a call that was started may still be completed later.
        """
        if self._waiting >= _MAX_WAITING:
            raise StoreDoesNotAnswer(
                f"{self._waiting} requests are already waiting for {self._store}",
                remedy="Check the store, and try again",
            )
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="jobs store", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()
        self._waiting += 1
        self._calls.put(_Call(work, answer))
        try:
            return await asyncio.wait_for(answer, self._timeout_s)
        except TimeoutError as error:
            raise StoreDoesNotAnswer(
                f"{self._store} has not answered for {self._timeout_s:g} s", remedy="Check the store, and try again"
            ) from error
        except StoreUnavailable as error:
            raise StoreDoesNotAnswer(f"{self._store} does not answer: {error.message}", remedy=error.remedy) from error

    def close(self) -> None:
        """End the thread, which closes the store. Blocks: don't call it in the event loop."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join(_END_S)

    def _run(self) -> None:
        opened: Opened | None = None
        with ExitStack() as stack:
            while (call := self._calls.get()) is not None:
                result: Any = None
                failure: Exception | None = None
                if not call.answer.cancelled():
                    try:
                        if opened is None:
                            opened = stack.enter_context(self._opener())
                        result = call.work(opened)
                    except Exception as error:  # noqa: BLE001 - raised in the caller
                        failure = error
                self._deliver(call, result, failure)

    def _deliver(self, call: _Call[Opened], result: Any, failure: Exception | None) -> None:
        def deliver() -> None:
            self._waiting -= 1
            if call.answer.done():
                return
            if failure is not None:
                call.answer.set_exception(failure)
            else:
                call.answer.set_result(result)

        loop = call.answer.get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(deliver)
