"""Threads for work that would block the event loop: large answers, and blocking calls."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class Workers:
    """A thread pool. For one event loop."""

    def __init__(self, threads: int) -> None:
        """At most `threads` threads."""
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="worker")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run `work` in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Accept no more work. Running work is not interrupted."""
        self._threads.shutdown(wait=False, cancel_futures=True)
