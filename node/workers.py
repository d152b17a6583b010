"""Threads for work that would hold up the event loop: large answers, and calls that block."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class Workers:
    """A few threads. Its methods belong to one event loop."""

    def __init__(self, threads: int) -> None:
        """At most so many."""
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="worker")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Do it in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Take no more work; what runs is left to end by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)
