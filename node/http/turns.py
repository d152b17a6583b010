"""A request whose answer is worked on, while its connection waits for it."""

from abc import ABC, abstractmethod


class Turn(ABC):
    """The bytes of the request, and those that came behind it."""

    __slots__ = ("behind", "data")

    def __init__(self, data: bytes) -> None:
        self.data, self.behind = data, b""

    def linger(self) -> None:
        """The connection knows of it, and would have nothing to do but to wait: it may be answered in here."""
        return

    @abstractmethod
    def abandon(self) -> None:
        """The client has gone away."""
