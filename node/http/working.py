"""Questions are answered in threads, so many at a time, while the server goes on taking requests."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from strandline.clock import Clock
from strandline.node.query.queries import Cancellation

Result = TypeVar("Result")


class Workers:
    """Threads for questions. Its methods belong to one event loop."""

    def __init__(self, clock: Clock, *, concurrency: int, timeout_s: float) -> None:
        self._clock, self._timeout_s = clock, timeout_s
        self._threads = _threads(concurrency)

    def reload(self, *, concurrency: int, timeout_s: float) -> None:
        """Hold questions to these limits from now on. What is under way goes on as it began."""
        before, self._threads, self._timeout_s = self._threads, _threads(concurrency), timeout_s
        before.shutdown(wait=False)

    def cancellation(self, timeout_s: float | None = None) -> Cancellation:
        """For a question that is asked now. Its time never exceeds the limit of the settings."""
        return Cancellation(self._clock, self._timeout_s if timeout_s is None else min(timeout_s, self._timeout_s))

    async def run(self, work: Callable[[Cancellation], Result], *, timeout_s: float | None = None) -> Result:
        """Do it in a thread. The time counts from now, waiting for a thread included, and never exceeds the limit of
        the settings. When the client goes away the handler is cancelled, and the work is told so.
        """
        cancellation = self.cancellation(timeout_s)

        def checked() -> Result:
            # It may have waited for its thread until nobody wanted it any more.
            cancellation.check()
            return work(cancellation)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, checked)
        except asyncio.CancelledError:
            cancellation.cancel()
            raise

    def close(self) -> None:
        """Take no more work; what runs is left to end by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _threads(concurrency: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(concurrency, thread_name_prefix="query")
