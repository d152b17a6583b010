"""Sends and receives complete frames over a Unix socket."""

import select
import socket
from collections.abc import Callable, Sequence

from strandline.errors import Retryable
from strandline.node.query.frames import MAX_BODY, PREFIX, Buffer, FrameDamaged, Message, decode, encode, lengths_of

# The limit of Linux on buffers per call.
_MAX_BUFFERS = 1024
# Bytes. A message of up to this size is received with one call, fits into the socket's buffer, and is decoded in the
# event loop.
SMALL_MESSAGE = 64 << 10
# Bytes. Joining the buffers of a shorter message is faster than passing them to the kernel one by one.
_MAX_JOINED = 4 << 10


class LinkBroken(Retryable):
    """The other side has closed the connection. `clean`: between two frames."""

    def __init__(self, message: str, *, clean: bool = False) -> None:
        super().__init__(message)
        self.clean = clean


# Waits until the socket can be read (or written), and raises after a timeout.
Wait = Callable[[socket.socket, int], None]


def wait_forever(connection: socket.socket, events: int) -> None:
    """Wait without a timeout."""
    poll = select.poll()
    poll.register(connection, events)
    poll.poll()


def send(connection: socket.socket, message: Message, wait: Wait) -> None:
    """Send a message. `wait` is called where sending would block, even if the socket is blocking."""
    unsent: list[Buffer] = encode(message)
    if sum(map(len, unsent)) <= _MAX_JOINED:
        unsent = [b"".join(unsent)]
    while unsent:
        try:
            if len(unsent) == 1:
                sent = connection.send(unsent[0], socket.MSG_DONTWAIT)
            else:
                sent = connection.sendmsg(unsent[:_MAX_BUFFERS], (), socket.MSG_DONTWAIT)
        except BlockingIOError:
            wait(connection, select.POLLOUT)
            continue
        except OSError as error:
            raise LinkBroken(f"the link is broken: {error.strerror}", clean=True) from error
        unsent = _unsent(unsent, sent)


def receive(connection: socket.socket, wait: Wait, max_bytes: int = MAX_BODY) -> Message:
    """Receive a message whose header and body have at most `max_bytes` each. `wait` is called where a non-blocking
    socket has no data. Raises `LinkBroken`, and `FrameDamaged`, after which the connection can't be used any longer.
    """
    # Most messages are short and arrive complete. Nothing follows a message before it is answered.
    return receive_rest(connection, _receive_some(connection, wait), wait, max_bytes)


def receive_rest(connection: socket.socket, begun: bytes | bytearray, wait: Wait, max_bytes: int = MAX_BODY) -> Message:
    """Like `receive`, for a message whose beginning was received already."""
    if len(begun) < PREFIX.size:
        begun = bytearray(begun) + _receive_exactly(connection, PREFIX.size - len(begun), wait)
    header, body = lengths_of(begun[: PREFIX.size], max_bytes)
    start = PREFIX.size + header
    if len(begun) > start + body:
        raise FrameDamaged(f"{len(begun) - start - body} bytes follow after a frame")
    if len(begun) == start + body:
        return decode(begun[PREFIX.size : start], bytearray(begun[start:]))
    text = bytearray(begun[PREFIX.size :])
    if len(text) < header:
        text += _receive_exactly(connection, header - len(text), wait)
    # The body in its own buffer, so that its columns are aligned.
    return decode(text[:header], _receive_exactly(connection, body, wait, text[header:]))


def _receive_some(connection: socket.socket, wait: Wait) -> bytes:
    while True:
        try:
            data = connection.recv(SMALL_MESSAGE)
        except BlockingIOError:
            wait(connection, select.POLLIN)
            continue
        except OSError as error:
            raise LinkBroken(f"the link is broken: {error.strerror}", clean=True) from error
        if not data:
            raise LinkBroken("the other side has closed the link", clean=True)
        return data


def _receive_exactly(connection: socket.socket, size: int, wait: Wait, begun: bytearray | None = None) -> bytearray:
    """`size` bytes, of which `begun` were received already."""
    # The buffer grows as bytes arrive, so that a wrong length does not take all memory at once.
    data = begun if begun is not None else bytearray()
    piece = 1 << 20
    while len(data) < size:
        start = len(data)
        data.extend(bytes(min(piece, size - start)))
        view = memoryview(data)[start:]
        try:
            _fill(connection, view, wait)
        finally:
            view.release()
        piece = max(piece, len(data))
    return data


def _fill(connection: socket.socket, view: memoryview, wait: Wait) -> None:
    at = 0
    while at < len(view):
        try:
            got = connection.recv_into(view[at:])
        except BlockingIOError:
            wait(connection, select.POLLIN)
            continue
        except OSError as error:
            raise LinkBroken(f"the link is broken: {error.strerror}") from error
        if got == 0:
            raise LinkBroken("the other side has closed the link")
        at += got


def _unsent(buffers: Sequence[Buffer], sent: int) -> list[Buffer]:
    """The buffers without their first `sent` bytes."""
    for index, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[index + 1 :]]
        sent -= len(buffer)
    return []
