"""Frames over a socket of the machine: sent and received whole, within the time that a question has."""

import select
import socket
from collections.abc import Callable, Sequence

from strandline.errors import Retryable
from strandline.node.query.frames import MAX_BODY, PREFIX, Buffer, Message, decode, encode, lengths_of

# Linux takes so many buffers in one call.
_MOST_BUFFERS = 1024


class LinkBroken(Retryable):
    """The other side is gone. `clean` says that it went between two frames, or before the first byte of one."""

    def __init__(self, message: str, *, clean: bool = False) -> None:
        super().__init__(message)
        self.clean = clean


# Waits until the socket can be read (or written); raises when that takes too long.
Waits = Callable[[socket.socket, int], None]


def wait_for_ever(connection: socket.socket, events: int) -> None:
    """For a side that has nothing else to do."""
    poll = select.poll()
    poll.register(connection, events)
    poll.poll()


def send(connection: socket.socket, message: Message, wait: Waits) -> None:
    """Send a message. The socket does not block; `wait` is called where it would."""
    left: list[Buffer] = encode(message)
    while left:
        try:
            sent = connection.sendmsg(left[:_MOST_BUFFERS])
        except BlockingIOError:
            wait(connection, select.POLLOUT)
            continue
        except OSError as error:
            raise LinkBroken(f"the link is broken: {error.strerror}", clean=True) from error
        left = _behind(left, sent)


def receive(connection: socket.socket, wait: Waits, most: int = MAX_BODY) -> Message:
    """Receive a message whose header and body have no more than `most` bytes each. Raises `LinkBroken`, and
    `FrameDamaged`, after which the connection is good for nothing.
    """
    header, body = lengths_of(_received(connection, PREFIX.size, wait, clean=True), most)
    text = _received(connection, header, wait)
    return decode(text, _received(connection, body, wait))


def _received(connection: socket.socket, size: int, wait: Waits, *, clean: bool = False) -> bytearray:
    # Memory comes as bytes do: a length that is not true must not take it all at once.
    data = bytearray()
    piece = 1 << 20
    while len(data) < size:
        start = len(data)
        data.extend(bytes(min(piece, size - start)))
        view = memoryview(data)[start:]
        try:
            _fill(connection, view, wait, clean=clean and start == 0)
        finally:
            view.release()
        piece = max(piece, len(data))
    return data


def _fill(connection: socket.socket, view: memoryview, wait: Waits, *, clean: bool) -> None:
    at = 0
    while at < len(view):
        try:
            got = connection.recv_into(view[at:])
        except BlockingIOError:
            wait(connection, select.POLLIN)
            continue
        except OSError as error:
            raise LinkBroken(f"the link is broken: {error.strerror}", clean=clean and at == 0) from error
        if got == 0:
            raise LinkBroken("the other side has closed the link", clean=clean and at == 0)
        at += got


def _behind(buffers: Sequence[Buffer], sent: int) -> list[Buffer]:
    """What is left of some buffers once so many bytes are sent."""
    for place, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[place + 1 :]]
        sent -= len(buffer)
    return []
