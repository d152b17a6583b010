"""A request whose answer is worked on, while its connection waits for it."""


class Turn:
    """The bytes of the request, and those that came behind it."""

    __slots__ = ("behind", "data")

    def __init__(self, data: bytes) -> None:
        self.data, self.behind = data, b""

    def abandon(self) -> None:
        """The client has gone away."""
        raise NotImplementedError
