"""How the supervisor hears from a shard's process, without knowing how the two talk."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from strandline.node.shard.report import ShardReport


class ShardLink(Protocol):
    """The way to one shard's process, for as long as the supervisor lives: the process behind it may change."""

    def report(self, timeout: float) -> ShardReport:
        """What the process says of itself. Raises `Retryable` or `OSError` if there is no answer within `timeout`
        seconds, or nobody to answer.
        """
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


Link = TypeVar("Link", bound=ShardLink)
LinkFactory = Callable[[int, Path], Link]
"""Makes the link to a shard, by its number and the path of its socket. It must not connect yet."""
