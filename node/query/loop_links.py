"""The event loop's connections to one shard's process.

The loop watches them all the time. So it sees at once when the other side is gone, and a question costs it one call of
the system to send it and one to receive the answer. What is long, or late, goes to a thread with its connection.
"""

import asyncio
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from strandline.node.query.frames import frame_size
from strandline.node.query.link_socket import SHORT

# So many are kept for the next questions.
_KEPT = 8


class LoopLinks:
    """Connections to the process that listens at a path. Its methods belong to the event loop that asks first; `close`
    may be called by any thread.
    """

    def __init__(self, path: Path) -> None:
        """Nothing is connected before the first question."""
        self._path = path
        self._idle: list[LoopLink] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    def take(self) -> "LoopLink | None":
        """A connection to ask over, or to give back; None if there is none without waiting."""
        return self._idle.pop() if self._idle else self._connected()

    def ask(self, question: bytes | memoryview, expected: "Expected") -> bool:
        """Send a question whose answer is expected; False if that can't be done without waiting."""
        while self._idle:
            if self._idle.pop().ask(question, expected):
                return True
        link = self._connected()
        return link is not None and link.ask(question, expected)

    def close(self) -> None:
        """Close the connections that nobody uses now, and the others when they are no longer used."""
        self._is_closed = True
        if self._loop is not None and not self._loop.is_closed():
            with suppress(RuntimeError):  # It was closed meanwhile, and watches nothing any more.
                self._loop.call_soon_threadsafe(self._close_idle)
                return
        self._close_idle()

    def give_back(self, link: "LoopLink") -> None:
        """The connection is good for another question."""
        if self._is_closed or len(self._idle) >= _KEPT:
            link.close()
        else:
            self._idle.append(link)

    def forget(self, link: "LoopLink") -> None:
        """The connection is closed."""
        if link in self._idle:
            self._idle.remove(link)

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _connected(self) -> "LoopLink | None":
        if self._is_closed:
            return None
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            connection.connect(str(self._path))
        except OSError:
            # Nobody listens, or so many wait to be heard that one would have to wait.
            connection.close()
            return None
        self._loop = asyncio.get_running_loop()
        return LoopLink(connection, self._loop, self)


class Expected:
    """An answer that was asked for. `came` is called later, and once; then one of these is true: the frame is here, or
    its beginning is here and the rest comes over a connection that nobody watches, or the other side is gone.
    """

    __slots__ = ("came", "frame", "link", "rest")

    def __init__(self, came: Callable[[], None]) -> None:
        self.came = came
        self.frame: bytes | None = None
        self.rest: tuple[socket.socket, bytes] | None = None
        self.link: LoopLink | None = None

    def linger(self, milliseconds: int) -> bool:
        """Let the loop do nothing but wait for it, for so long at the most; whether it was heard of."""
        return self.link is None or self.link.linger(milliseconds)

    def detach(self) -> None:
        """Do not wait any longer: what is still to come is for a thread to receive. `came` is not called."""
        link, self.link = self.link, None
        if link is not None:
            self.rest = link.detach()

    def abandon(self) -> None:
        """Nobody wants it any more, and the other side is told so by the end of the connection."""
        link, self.link = self.link, None
        if link is not None:
            link.close()
        elif self.rest is not None:
            self.rest[0].close()


class LoopLink:
    """One connection, for one question at a time."""

    def __init__(self, connection: socket.socket, loop: asyncio.AbstractEventLoop, links: LoopLinks) -> None:
        self._connection, self._loop, self._links = connection, loop, links
        self._expected: Expected | None = None
        self._begun = b""
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        loop.add_reader(connection, self._readable)

    def ask(self, question: bytes | memoryview, expected: Expected) -> bool:
        """Send a question; False, and the connection is closed, if it does not go out at once and whole."""
        try:
            sent = self._connection.send(question)
        except OSError:
            sent = -1
        if sent != len(question):
            self.close()
            return False
        self._expected, self._begun, expected.link = expected, b"", self
        return True

    def linger(self, milliseconds: int) -> bool:
        """Take what comes within so long, while the loop stands still; whether anything came."""
        # Not by receiving: that would be woken up when the other side takes the question, too.
        came = bool(self._poll.poll(milliseconds))
        if came:
            self._readable()
        return came

    def give_back(self) -> None:
        """It was not needed."""
        self._links.give_back(self)

    def detach(self) -> tuple[socket.socket, bytes]:
        """Watch it no longer: the connection, and what came over it."""
        self._expected = None
        self._loop.remove_reader(self._connection)
        return self._connection, self._begun

    def close(self) -> None:
        """End the connection."""
        self._expected = None
        self._links.forget(self)
        if not self._loop.is_closed():
            self._loop.remove_reader(self._connection)
        self._connection.close()

    def _readable(self) -> None:
        try:
            data = self._connection.recv(SHORT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        expected = self._expected
        if expected is None or not data:
            # The other side is gone; or what it says belongs to no question.
            self.close()
            if expected is not None:
                expected.link = None
                expected.came()
            return
        self._begun = begun = self._begun + data if self._begun else data
        size = frame_size(begun)
        if size == len(begun):
            self._expected = expected.link = None
            expected.frame = begun
            self._links.give_back(self)
        elif size is not None and (size > SHORT or size < len(begun)):
            expected.detach()
        else:
            return
        expected.came()
